//===- BlockShape.cpp - choose the block's dimensions ---------------------===//
//
// block-shape[kernel]{x=16,y=16}: launches blocks of this shape, with as many of them as cover the same threads, and makes
// the extents constants of the kernel.
//
// Legal without further ado when the given shape is the launch's own (recorded as a condition). Otherwise every used axis
// must be used through the global index alone, nothing may synchronize or share memory, and threads beyond the original
// ones must do nothing: either all effects stand under `global index < U`, with U <= original threads as a condition, or
// the new extent divides the original number of threads, as a condition.
//
//===----------------------------------------------------------------------===//
#include "Common.h"
#include "ThreadMapping.h"
#include "Transforms.h"

using namespace optiml;

namespace {
class BlockShape : public Transform {
public:
  llvm::StringRef name() const override { return "block-shape"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::array<int64_t, 3> pinned = state.pinnedBlock();
    if (pinned[0] || pinned[1] || pinned[2])
      return {};
    static const std::vector<std::array<int, 2>> shapes2 = {{16, 16}, {32, 8}, {16, 8}, {8, 16}, {32, 4}, {8, 8}, {32, 16}, {32, 32}, {64, 4}};
    static const std::vector<std::array<int, 2>> shapes1 = {{256, 1}, {128, 1}, {512, 1}, {64, 1}, {1024, 1}};
    ActionTemplate site{"block-shape", state.rewrite.original, {}};
    auto offer = [&](int64_t x, int64_t y, int64_t z) {
      Params params = {{"x", std::to_string(x)}, {"y", std::to_string(y)}};
      if (z > 1)
        params["z"] = std::to_string(z);
      for (const Params &known : site.values)
        if (known == params)
          return;
      auto applied = apply(state, "", params);
      if (applied)
        site.values.push_back(params);
      else
        llvm::consumeError(applied.takeError());
    };
    if (state.hints.block[0])
      offer(state.hints.block[0], state.hints.block[1], state.hints.block[2]);
    auto kernel = state.tree->clone();
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(*kernel, {0, 0, 0});
    for (const auto &[x, y] : uses[1].global ? shapes2 : shapes1)
      offer(x, y, 1);
    if (state.hints.tensorFloat && uses[1].global)
      for (int y : {32, 64}) // as fragments of tensor cores lie with the lanes of a warp
        offer(4, y, 1);
    if (site.values.empty())
      return {};
    return {site};
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    std::array<int64_t, 3> shape = {paramInt(params, "x", 1), paramInt(params, "y", 1), paramInt(params, "z", 1)};
    int64_t threads = shape[0] * shape[1] * shape[2];
    if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || threads > state.hints.maxThreads || shape[2] > 64)
      return notApplicable("a block of {0}x{1}x{2} threads cannot be launched", shape[0], shape[1], shape[2]);
    std::array<int64_t, 3> pinned = state.pinnedBlock();
    if (pinned[0] || pinned[1] || pinned[2])
      return notApplicable("the block shape is fixed already");
    if (state.tree->maxThreads && threads > state.tree->maxThreads)
      return notApplicable("the kernel is bounded to {0} threads a block", state.tree->maxThreads);
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (shape == state.hints.block && !onlyGlobal(state)) {
      // The launch's own shape: nothing moves, the extents become constants.
      for (unsigned axis = 0; axis < 3; ++axis) {
        result.require(std::string("block.") + char('x' + axis) + " == " + std::to_string(shape[axis]), "the kernel is written for this block shape");
        result.rewrite.plan.steps[0].block[axis] = IntExpr::literal(shape[axis]);
        substitute(*kernel->body, {{std::string("blockDim.") + char('x' + axis), intLit(shape[axis])}});
      }
      kernel->maxThreads = unsigned(threads);
      result.tree = kernel;
      return result;
    }
    std::array<CopyAxis, 3> none;
    for (unsigned axis = 0; axis < 3; ++axis)
      none[axis].axis = axis;
    if (llvm::Error e = remapThreads(result, *kernel, shape, none))
      return e;
    kernel->maxThreads = unsigned(threads);
    result.tree = kernel;
    return result;
  }

private:
  static bool onlyGlobal(const KernelState &state) {
    KernelState trial = state;
    auto copy = state.tree->clone();
    adoptPlainIndices(trial, *copy);
    if (threadsWorkTogether(*copy))
      return false;
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(*copy, {0, 0, 0});
    return !uses[0].other && !uses[1].other && !uses[2].other;
  }
};
} // namespace

const Transform *optiml::makeBlockShape() {
  static const BlockShape transform;
  return &transform;
}
