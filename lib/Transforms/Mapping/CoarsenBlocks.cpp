//===- CoarsenBlocks.cpp - several blocks' work in one --------------------===//
//
// coarsen-blocks[kernel]{x=2}: each block does the work of `x` neighbouring ones (or `y`, `z`), also where its threads
// wait for each other. Their barriers become one, private variables and shared arrays that differ between the blocks
// get a copy for each, and what is the same for all is computed, loaded and kept once.
//
// Example:
//   __shared__ float row[256];                   __shared__ float row[2][256];
//   int t = threadIdx.x;                         int t = threadIdx.x;
//                                                #pragma unroll
//   row[t] = x[blockIdx.x * 256 + t] * w[t];     for (int ix = 0; ix < 2; ++ix) {
//                                                  row[ix][t] = x[(blockIdx.x * 2 + ix) * 256 + t] * w[t];
//                                                }
//   __syncthreads();                             __syncthreads();
//   …                                            …
//                                                // plan: <<<(ceildiv(grid.x, 2), grid.y, grid.z), …>>>
//                                                // when grid.x % 2 == 0
//
// Legal: blocks run in any order, so their statements may be interleaved; a barrier more than a block asked for does no
// harm. The number of blocks is a multiple of the factor, by a condition. A guard that decides for a whole block, as
// `row < rows`, decides for all that are put together, where the bound is a multiple of the factor, too.
//
// Refuses: blocks whose barriers all stand behind conditions that differ between them; barriers after some threads have
// returned; loops that wait for other blocks; calls and verbatim text that may ask for their block. It also refuses
// shared arrays that are too large where each block needs its own, and those of dynamic size that are used for more
// than their elements.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
constexpr const char *axisNames[] = {"x", "y", "z"};

bool asks(const Kernel &kernel, const char *base, unsigned axis) {
  return anyExpr(*kernel.body, [&](const ExprRef &e) { return isBuiltin(e, axisName(base, axis)); });
}

/// Blocks take turns: each copy would have a loop of its own.
bool takesTurns(const Kernel &kernel, unsigned axis) {
  return asks(kernel, "gridDim", axis) && anyStmt(*kernel.body, [&](const Stmt &s) {
           return s.kind == StmtKind::For && s.step &&
                  anyNode(s.step, [&](const ExprRef &e) { return isBuiltin(e, axisName("gridDim", axis)); });
         });
}

/// What the kernel calls, and text that is kept as it is, does not ask which block it runs in, and no block waits for
/// another.
llvm::Error requireUnaware(const Kernel &kernel) {
  llvm::Error refused = llvm::Error::success();
  auto refuse = [&](unsigned line, const char *what) {
    if (!refused)
      refused = notApplicable("line {0}: {1}", line, what);
  };
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Opaque && s.mayBarrier && !s.isUnaware)
      refuse(s.line, "text that is kept as it is may ask for its block");
    auto waits = [](const ExprRef &e) {
      const bool mayUpdate = e->isOfAnyBlock && !e->isUnaware && !onlyExchangesRegisters(*e);
      return mayUpdate || (e->type.isVolatile && e->kind != ExprKind::Var);
    };
    if (isLoop(s) && !asCountedLoop(s) && !asStridedLoop(s) && anyExpr(s, waits))
      refuse(s.line, "the loop may wait for another block");
  });
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    const bool isKnown =
        e->pure || e->isAtomic || e->isConfined || e->isUnaware || e->isOfAnyBlock || onlyExchangesRegisters(*e);
    if ((e->kind == ExprKind::Call || e->kind == ExprKind::Opaque) && !isKnown)
      refuse(e->line, "a call may ask for its block");
  });
  return refused;
}

/// Threads that have returned do not come to a barrier; those that only skip it have to.
llvm::Error requireAllAtBarriers(const Kernel &kernel) {
  const KernelModel model(kernel);
  unsigned line = 0;
  walk(*kernel.body, [&](Stmt &s) {
    if (!line && s.kind == StmtKind::If && model.varies(s.expr) & AnyThread && holdsKind(s, {StmtKind::Barrier}))
      line = std::max(1u, s.line);
  });
  return line ? notApplicable("some threads return before a barrier (line {0})", line) : llvm::Error::success();
}

/// An axis along which the copies are counted meanwhile: the kernel has no blocks there, and at best no threads. (What
/// differs between threads there counts as different between copies.)
std::optional<unsigned> freeAxis(const Kernel &kernel) {
  for (bool mayHaveThreads : {false, true})
    for (unsigned axis : {2u, 1u, 0u})
      if (!asks(kernel, "blockIdx", axis) && !asks(kernel, "globalIdx", axis) &&
          (mayHaveThreads || !asks(kernel, "threadIdx", axis)))
        return axis;
  return std::nullopt;
}

/// blockIdx.from becomes globalIdx.to, and there are `factor` times the blocks.
void renameBlocks(Kernel &kernel, unsigned from, unsigned to, int64_t factor) {
  rewriteExprs(*kernel.body, [&](const ExprRef &e) {
    return isBuiltin(e, axisName("gridDim", from)) ? mul(e, intLit(factor)) : ExprRef();
  });
  renameIndex(kernel, axisName("blockIdx", from), axisName("globalIdx", to));
}

/// Each barrier is one of a copy's own: nothing is gained where blocks wait one after the other.
bool sharesBarriers(const Kernel &kernel, const std::string &copy) {
  std::function<bool(const Stmt &)> meets = [&](const Stmt &s) {
    const bool isCopies = s.kind == StmtKind::For && s.init && s.init->text == copy;
    return s.kind == StmtKind::Barrier ||
           (!isCopies && llvm::any_of(s.body, [&](const StmtRef &child) { return meets(*child); }));
  };
  return meets(*kernel.body) || !holdsKind(*kernel.body, {StmtKind::Barrier});
}

class CoarsenBlocks : public Transform {
public:
  llvm::StringRef name() const override { return "coarsen-blocks"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    if (!keepsBlocks(state))
      return {};
    std::vector<Params> values;
    for (unsigned axis = 0; axis < 3; ++axis)
      if (asks(*state.tree, "blockIdx", axis) && !takesTurns(*state.tree, axis))
        for (const char *factor : {"2", "4"})
          values.push_back({{axisNames[axis], factor}});
    std::vector<ActionTemplate> result;
    offer(result, state, "", values);
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    unsigned axis = 3;
    for (unsigned a = 0; a < 3; ++a)
      if (params.count(axisNames[a]))
        axis = axis == 3 ? a : 4;
    if (axis > 2)
      return notApplicable("one of x, y and z tells how many blocks are put together");
    const int64_t factor = paramInt(params, axisNames[axis], 2);
    if (factor < 2 || factor > 16)
      return notApplicable("the factor along {0} must be 2 to 16", axisNames[axis]);
    auto kernel = state.tree->clone();
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = prepare(*kernel, axis))
      return std::move(e);
    if (llvm::Error e = merge(result, *kernel, axis, factor))
      return std::move(e);
    if (sharedBytes(*kernel) > int64_t(state.hints.maxSharedBytes))
      return notApplicable("{0} blocks need more shared memory than a block can have", factor);
    const std::string blocks = result.rewrite.plan.steps[0].grid[axis].str(), each = std::to_string(factor);
    result.require(IntExpr::of("(" + blocks + ") % " + each + " == 0"), "blocks are put together without a rest");
    setBlocks(result, axis, IntExpr::of("ceildiv(" + blocks + ", " + each + ")"));
    return result;
  }

private:
  static void growDynamicMemory(KernelState &state, int64_t fixed, int64_t factor) {
    IntExpr &bytes = state.rewrite.plan.steps[0].sharedBytes;
    bytes = IntExpr::of("(" + bytes.str() + ") * " + std::to_string(factor));
    state.require(IntExpr::of(bytes.str() + " + " + std::to_string(fixed * factor) +
                              " <= " + std::to_string(state.hints.maxSharedBytes)),
                  "a block can have the shared memory of all that are put together");
  }

  /// What a thread does depends on its block. Other kernels leave theirs to `coarsen`.
  static bool keepsBlocks(const KernelState &state) {
    if (llvm::Error e = requireApart(*state.tree)) {
      llvm::consumeError(std::move(e));
      return true;
    }
    if (state.isPinned())
      return false;
    auto copy = state.tree->clone();
    const std::array<AxisUse, 3> uses = normalizeGlobalIndex(*copy, {0, 0, 0});
    return llvm::any_of(uses, [](const AxisUse &use) { return use.other; });
  }

  static llvm::Error prepare(Kernel &kernel, unsigned axis) {
    if (!asks(kernel, "blockIdx", axis))
      return notApplicable("the kernel does not use blocks along {0}", axisNames[axis]);
    if (llvm::Error e = requireConstantParameters(kernel))
      return e;
    if (llvm::Error e = requireUnaware(kernel))
      return e;
    const bool returns = holdsKind(*kernel.body, {StmtKind::Return});
    if (llvm::Error e = removeReturns(kernel))
      return e;
    return returns ? requireAllAtBarriers(kernel) : llvm::Error::success();
  }

  static llvm::Error merge(KernelState &state, Kernel &kernel, unsigned axis, int64_t factor) {
    const std::optional<unsigned> counted = freeAxis(kernel);
    if (!counted)
      return notApplicable("blocks along three axes are not put together");
    CopyAxis copy;
    copy.axis = *counted;
    copy.factor = factor;
    copy.var = freshName(kernel, std::string("i") + axisNames[axis]);
    renameBlocks(kernel, axis, *counted, factor);
    inlinePointerLocals(kernel);
    takeQuotientsOfFirst(state, kernel, *counted, factor, 1);
    takeBoundsOfFirst(state, kernel, *counted, factor, 1);
    const KernelModel model(kernel);
    Distributor distributor(kernel, model, {copy}, 0, [](Stmt &) { return true; });
    auto body = distributor.run();
    if (!body)
      return body.takeError();
    if (distributor.growsDynamicMemory())
      growDynamicMemory(state, sharedBytes(kernel), factor);
    kernel.body = *body;
    if (!sharesBarriers(kernel, copy.var))
      return notApplicable("the blocks have no barrier in common");
    const ExprRef first = mul(axisBuiltin("blockIdx", axis), intLit(factor));
    lowerGlobalIndex(kernel, [&](unsigned) { return first; });
    lowerFirstIndices(kernel, [&](unsigned, bool) { return first; });
    removeUnused(kernel);
    return llvm::Error::success();
  }
};
} // namespace

DEFINE_TRANSFORM(CoarsenBlocks)
