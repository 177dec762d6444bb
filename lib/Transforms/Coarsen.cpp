//===- Coarsen.cpp - several outputs a thread -----------------------------===//
//
// coarsen[kernel]{x=4,y=4,style=blocked|strided|pieces|fragments}: each thread does the work of x*y threads of the kernel; private
// variables become register arrays, and loops that all of them share are shared. blocked: a thread's outputs are
// adjacent (wide shared-memory reads); strided: they lie a block extent apart (coalesced); pieces: pieces of four
// adjacent ones, neighbouring threads' pieces side by side (wide reads that meet in no bank); fragments: pieces of two along
// x, strided along the others (what tensor-core wants).
//
// Legal: threads of a kernel without barriers run in any order. The conditions on the launch are those of block-shape;
// the block shape must be fixed first.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"

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
    ActionTemplate site{"coarsen", state.rewrite.original, {}};
    auto offer = [&](int x, int y, const char *style, int z = 1) {
      Params params = {{"x", std::to_string(x)}, {"y", std::to_string(y)}, {"style", style}};
      if (z > 1)
        params["z"] = std::to_string(z);
      auto applied = apply(state, "", params);
      if (applied)
        site.values.push_back(params);
      else
        llvm::consumeError(applied.takeError());
    };
    static const std::vector<std::array<int, 2>> pairs = {{8, 8}, {4, 4}, {4, 8}, {8, 4}, {1, 4}, {1, 8}, {2, 4}, {4, 2}, {2, 2}, {4, 1}, {2, 1}, {1, 2}, {8, 16}};
    static const std::vector<std::array<int, 2>> singles = {{4, 1}, {2, 1}, {8, 1}};
    // Outputs along z, as channels of a convolution, share what lies along x and y.
    static const std::vector<std::array<int, 2>> deep = {{1, 8}, {1, 4}, {2, 16}, {2, 8}, {4, 8}, {1, 2}};
    bool two = uses[1].global && !uses[1].other;
    if (uses[2].global && !uses[2].other)
      for (const auto &[y, z] : deep)
        offer(1, two ? y : 1, "strided", z);
    if (two && state.hints.tensorFloat && shape[0] == 4) // as tensor-core wants them
      for (const auto &[x, y] : {std::pair(16, 4), {16, 2}, {16, 8}, {32, 4}, {8, 4}})
        offer(x, y, "fragments");
    for (const auto &[x, y] : two ? pairs : singles) {
      offer(x, y, two ? "blocked" : "strided");
      offer(x, y, two ? "strided" : "blocked");
      if (two)
        offer(x, y, "pieces");
    }
    if (site.values.empty())
      return {};
    return {site};
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || !shape[2])
      return notApplicable("the block shape is not fixed yet (apply block-shape first)");
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
        return notApplicable("{0} outputs along {1} are not whole pieces of {2}", copies[axis].factor, names[axis], copies[axis].piece);
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
    KernelState result = state;
    if (llvm::Error e = remapThreads(result, *kernel, shape, copies))
      return e;
    result.tree = kernel;
    return result;
  }
};
} // namespace

const Transform *optiml::makeCoarsen() {
  static const Coarsen transform;
  return &transform;
}
