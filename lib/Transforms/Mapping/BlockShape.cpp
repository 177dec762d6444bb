//===- BlockShape.cpp - the block's dimensions, as constants --------------===//
//
// block-shape[kernel]{x=128,y=1}: launches blocks of this shape, as many as cover the same threads. The extents become
// constants of the kernel, and it gets `__launch_bounds__`. `coarsen` and `stage-shared` build on it.
//
// Example:
//   int i = blockIdx.x * blockDim.x + threadIdx.x;      int i = blockIdx.x * 128 + threadIdx.x;
//   if (i < n)                                          if (i < n) {
//     c[i] = a[i];                                        c[i] = a[i];
//                                                       }
//   // plan: guarded_optiml<<<(ceildiv(grid.x * block.x, 128), 1, 1), (128, 1, 1), shared>>>
//   // when n <= grid.x * block.x
//   // when grid.y * block.y == 1, grid.z * block.z == 1
//
// Legal: the kernel uses every axis through its global index `blockIdx.a * blockDim.a + threadIdx.a` alone, has no
// shared memory, and calls nothing that asks which thread runs it. Its threads may then run in any blocks. Threads
// beyond the original ones
// must do nothing. Either every effect stands under `global index < U`, U being a polynomial of parameters, and
// `U <= grid.a * block.a` is a condition; or `(grid.a * block.a) % extent == 0` is one.
//
// The launch's own shape is legal for kernels of every other kind too. Nothing moves, `blockDim` becomes constants, and
// `block.a == extent` is a condition.
//
// Refuses: another shape for a kernel that synchronizes, uses shared memory, or calls what asks which thread runs it.
// It also refuses an axis with other uses than the global index (`threadIdx.x % 32`, a grid-stride loop), a kernel
// without a global index, and shapes that cannot be launched.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {
class BlockShape : public Transform {
public:
  llvm::StringRef name() const override { return "block-shape"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    if (state.isPinned())
      return {};
    static const std::vector<std::array<int, 2>> shapes2 = {{16, 16}, {32, 8},  {16, 8}, {8, 16},  {32, 4}, {8, 8},
                                                            {32, 16}, {32, 32}, {64, 4}, {128, 1}, {256, 1}};
    static const std::vector<std::array<int, 2>> shapes1 = {{256, 1}, {128, 1}, {512, 1}, {64, 1}, {1024, 1}, {32, 1}};
    std::vector<Params> values;
    auto add = [&](int64_t x, int64_t y, int64_t z) {
      Params params = {{"x", std::to_string(x)}, {"y", std::to_string(y)}};
      if (z > 1)
        params["z"] = std::to_string(z);
      if (!llvm::is_contained(values, params))
        values.push_back(params);
    };
    if (state.hints.block[0])
      add(state.hints.block[0], state.hints.block[1], state.hints.block[2]);
    auto kernel = state.tree->clone();
    KernelState trial = state;
    pairAxes(trial, *kernel);
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(*kernel, {0, 0, 0});
    for (const auto &[x, y] : uses[1].global ? shapes2 : shapes1)
      add(x, y, 1);
    if (state.hints.tensorFloat && uses[1].global)
      for (int y : {32, 64}) // as fragments of tensor cores lie with the lanes of a warp
        add(4, y, 1);
    std::vector<ActionTemplate> result;
    offer(result, state, "", values);
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    std::array<int64_t, 3> shape = {paramInt(params, "x", 1), paramInt(params, "y", 1), paramInt(params, "z", 1)};
    int64_t threads = shape[0] * shape[1] * shape[2];
    if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || threads > state.hints.maxThreads || shape[2] > 64)
      return notApplicable("a block of {0}x{1}x{2} threads cannot be launched", shape[0], shape[1], shape[2]);
    if (state.isPinned())
      return notApplicable("{0}", shapeIsFixed);
    if (state.tree->maxThreads && threads > state.tree->maxThreads)
      return notApplicable("the kernel is bounded to {0} threads a block", state.tree->maxThreads);
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (shape == state.hints.block && !onlyGlobal(state)) {
      // The launch's own shape: nothing moves, the extents become constants.
      result.requireBlock(shape, "the kernel is written for this block shape");
      for (unsigned axis = 0; axis < 3; ++axis) {
        result.rewrite.plan.steps[0].block[axis] = IntExpr::literal(shape[axis]);
        substitute(*kernel->body, {{axisName("blockDim", axis), intLit(shape[axis])}});
      }
      kernel->maxThreads = unsigned(threads);
      result.tree = kernel;
      return result;
    }
    if (llvm::Error e = remapThreads(result, *kernel, shape, {}))
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

DEFINE_TRANSFORM(BlockShape)
