//===- Coarsen.cpp - several outputs a thread -----------------------------===//
//
// coarsen[kernel]{x=4,y=1,style=strided}: each thread does the work of `x * y` threads. Private variables that differ
// between these threads become register arrays, and loops that all of them run alike are shared. What is the same for
// all outputs along an axis, such as a sum over the row, is computed once for them.
//
// Example:
//   int i = blockIdx.x * 128 + threadIdx.x;     int i = blockIdx.x * 512 + threadIdx.x;
//   if (i >= n)                                 #pragma unroll
//     return;                                   for (int ix = 0; ix < 4; ++ix) {
//   y[i] = a * x[i] + y[i];                       if (i + ix * 128 < n) {
//                                                   y[i + ix * 128] = a * x[i + ix * 128] + y[i + ix * 128];
//                                                 }
//                                               }
//
// Legal: as for `block-shape`, under the same conditions, with `extent * factor` in place of the extent. Threads of a
// kernel without barriers run in any order, so their statements may be interleaved. Early returns become guards. Guards
// that differ between the copies move inwards, onto what they guard. Where work serves several copies, it is that of
// the first of them, whose guard holds if that of any does. A loop whose bounds differ between the copies
// stays whole, within the loop over the copies.
//
// Refuses: a block shape that is not fixed, and what `block-shape` refuses. It also refuses an axis that the kernel
// does not use, and a second coarsening, which no longer sees the global index. Verbatim constructs that use a variable
// which would change, and arrays that are initialized in place, are refused too.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {
class Coarsen : public Transform {
public:
  llvm::StringRef name() const override { return "coarsen"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0])
      return {};
    auto kernel = state.tree->clone();
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(*kernel, shape);
    std::vector<Params> values;
    auto add = [&](int x, int y, const char *style, int z = 1) {
      values.push_back({{"x", std::to_string(x)}, {"y", std::to_string(y)}, {"style", style}});
      if (z > 1)
        values.back()["z"] = std::to_string(z);
    };
    static const std::vector<std::array<int, 2>> pairs = {{8, 8}, {4, 4}, {4, 8}, {8, 4}, {1, 4}, {1, 8}, {2, 4},
                                                          {4, 2}, {2, 2}, {4, 1}, {2, 1}, {1, 2}, {8, 16}};
    static const std::vector<std::array<int, 2>> singles = {{4, 1}, {2, 1}, {8, 1}};
    // Outputs along z, as channels of a convolution, share what lies along x and y.
    static const std::vector<std::array<int, 2>> deep = {{1, 8}, {1, 4}, {2, 16}, {2, 8}, {4, 8}, {1, 2}};
    bool two = uses[1].global && !uses[1].other;
    if (uses[2].global && !uses[2].other)
      for (const auto &[y, z] : deep)
        add(1, two ? y : 1, "strided", z);
    if (two && state.hints.tensorFloat && shape[0] == 4) // as tensor-core wants them
      for (const auto &[x, y] : {std::pair(16, 4), {16, 2}, {16, 8}, {32, 4}, {8, 4}})
        add(x, y, "fragments");
    for (const auto &[x, y] : two ? pairs : singles) {
      add(x, y, two ? "blocked" : "strided");
      add(x, y, two ? "strided" : "blocked");
      if (two)
        add(x, y, "pieces");
    }
    std::vector<ActionTemplate> result;
    offer(result, state, "", values);
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || !shape[2])
      return notApplicable("{0}", shapeIsOpen);
    auto style = params.find("style");
    std::string how = style == params.end() ? "blocked" : style->second;
    if (how != "blocked" && how != "strided" && how != "pieces" && how != "fragments")
      return notApplicable("the style must be 'blocked', 'strided', 'pieces' or 'fragments'");
    bool anyPieces = false;
    auto kernel = state.tree->clone();
    std::array<CopyAxis, 3> copies;
    int64_t outputs = 1;
    static const char *const names[] = {"x", "y", "z"};
    for (unsigned axis = 0; axis < 3; ++axis) {
      copies[axis].axis = axis;
      copies[axis].factor = paramInt(params, names[axis], 1);
      if (copies[axis].factor < 1 || copies[axis].factor > 64)
        return notApplicable("the factor along {0} must be 1 to 64", names[axis]);
      copies[axis].distance = how == "blocked" ? 1 : shape[axis];
      copies[axis].piece = how == "pieces" ? 4 : how == "fragments" && axis == 0 ? 2 : 1;
      if (copies[axis].factor > copies[axis].piece && copies[axis].factor % copies[axis].piece != 0)
        return notApplicable("{0} outputs along {1} are not whole pieces of {2}", copies[axis].factor, names[axis],
                             copies[axis].piece);
      anyPieces |= copies[axis].piece > 1 && copies[axis].factor > copies[axis].piece;
      copies[axis].var = freshName(*kernel, axis == 0 ? "ix" : axis == 1 ? "iy" : "iz");
      outputs *= copies[axis].factor;
    }
    if (outputs == 1)
      return notApplicable("the factors are all 1");
    if (how == "pieces" && !anyPieces)
      return notApplicable("more than one piece of 4 outputs is wanted along some axis");
    if (outputs > 256)
      return notApplicable("{0} outputs a thread do not fit into registers", outputs);
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = remapThreads(result, *kernel, shape, copies))
      return e;
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(Coarsen)
