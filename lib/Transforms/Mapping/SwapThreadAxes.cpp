//===- SwapThreadAxes.cpp - neighbouring threads, neighbouring elements ---===//
//
// swap-thread-axes[kernel]{with=y}: what ran along `threadIdx.x` runs along `threadIdx.y` (or `z`), and the other way
// round. The launch is turned in the same way.
//
// Example:
//   int row = blockIdx.x * blockDim.x + threadIdx.x;  int row = blockIdx.y * blockDim.y + threadIdx.y;
//   int col = blockIdx.y * blockDim.y + threadIdx.y;  int col = blockIdx.x * blockDim.x + threadIdx.x;
//   c[row * n + col] = 2 * a[row * n + col];          c[row * n + col] = 2 * a[row * n + col];
//   // <<<grid, block>>>                              // <<<(grid.y, grid.x, grid.z), (block.y, block.x, block.z)>>>
//
// Legal: the kernel uses both axes through their global indices alone, and has neither barriers nor shared memory. So
// it does not matter which thread has which index. The new grid has at most 65535 blocks along y and z, as a condition.
//
// Refuses: a fixed block shape, axes that are swapped already, and a kernel whose threads work together.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {
class SwapThreadAxes : public Transform {
public:
  llvm::StringRef name() const override { return "swap-thread-axes"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<Params> offers;
    for (unsigned with : {1, 2})
      if (pays(state, with))
        offers.push_back({{"with", std::string(1, char('x' + with))}});
    return offers.empty() ? std::vector<ActionTemplate>() : kernelSite(*this, state, offers);
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    auto given = params.find("with");
    std::string axis = given == params.end() ? "y" : given->second;
    if (axis != "y" && axis != "z")
      return notApplicable("x can be swapped with y and with z");
    unsigned with = unsigned(axis[0] - 'x');
    if (state.isPinned())
      return notApplicable("{0}", shapeIsFixed);
    if (!(state.extents[0] == IntExpr::of("block.x")) && !(state.blocks[0] == IntExpr::of("grid.x")))
      return notApplicable("the axes are swapped already");
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = normalize(result, *kernel, with))
      return std::move(e);
    lowerGlobalIndex(*kernel, [&](unsigned of) {
      unsigned to = of == 0 ? with : of == with ? 0 : of;
      return add(mul(axisBuiltin("blockIdx", to), axisBuiltin("blockDim", to)), axisBuiltin("threadIdx", to));
    });
    LaunchStep &step = result.rewrite.plan.steps[0];
    std::swap(step.grid[0], step.grid[with]);
    std::swap(step.block[0], step.block[with]);
    std::swap(result.blocks[0], result.blocks[with]);
    std::swap(result.extents[0], result.extents[with]);
    std::swap(result.hints.grid[0], result.hints.grid[with]);
    std::swap(result.hints.block[0], result.hints.block[with]);
    result.require("grid." + axis + " <= 65535", "a grid cannot be larger");
    if (with == 2)
      result.require("block." + axis + " <= 64", "a block cannot be larger");
    result.tree = kernel;
    return result;
  }

private:
  /// Leaves the axes as globalIdx.a; NotApplicable where they are used in another way.
  static llvm::Error normalize(KernelState &state, Kernel &kernel, unsigned with) {
    if (llvm::Error e = requireApart(kernel, Kept::Statements))
      return e;
    adoptPlainIndices(state, kernel);
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(kernel, {0, 0, 0});
    for (unsigned axis = 0; axis < 3; ++axis)
      if (uses[axis].other)
        return notApplicable("axis {0} is used other than through the global index (line {1})", char('x' + axis),
                             uses[axis].otherLine);
    if (!uses[0].global || !uses[with].global)
      return notApplicable("the kernel does not use both axes");
    return llvm::Error::success();
  }

  /// More accesses have neighbours along `with` than along x.
  static bool pays(const KernelState &state, unsigned with) {
    KernelState trial = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = normalize(trial, *kernel, with)) {
      llvm::consumeError(std::move(e));
      return false;
    }
    KernelModel model(*kernel, {0, 0, 0});
    int balance = 0;
    for (const Access &access : model.accesses())
      balance +=
          int(accessesNeighbours(access, axisName("globalIdx", with))) - int(accessesNeighbours(access, "globalIdx.x"));
    return balance > 0;
  }
};
} // namespace

DEFINE_TRANSFORM(SwapThreadAxes)
