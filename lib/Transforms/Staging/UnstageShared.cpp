//===- UnstageShared.cpp - a kernel without its tiles ---------------------===//
//
// unstage-shared[kernel]: where a programmer has staged tiles in shared memory, every read of a tile becomes what was
// stored there, computed by the reader itself. Tiles and barriers disappear. Alone it makes a kernel slower. What is
// left is the kernel as one writes it first, which `block-shape`, `coarsen` and `stage-shared` then turn into a
// register tile.
//
// Example:
//   __shared__ float as[16][16], bs[16][16];                int row = blockIdx.y * blockDim.y + threadIdx.y;
//   int row = blockIdx.y * 16 + threadIdx.y, col = …;       int col = blockIdx.x * blockDim.x + threadIdx.x;
//   float sum = 0;                                          if (row < m && col < n) {
//   for (int t = 0; t < (k + 15) / 16; ++t) {                 float sum = 0;
//     as[ty][tx] = row < m && t * 16 + tx < k ?               for (int p = 0; p < k; ++p) {
//                  a[row * k + t * 16 + tx] : 0;                sum += a[row * k + p] * b[p * n + col];
//     bs[ty][tx] = …;                                         }
//     __syncthreads();                                        c[row * n + col] = sum;
//     for (int p = 0; p < 16; ++p)                          }
//       sum += as[ty][p] * bs[p][tx];                       // when block.x == 16, block.y == 16, block.z == 1
//     __syncthreads();                                      // when disjoint(a, …, c, …), disjoint(b, …, c, …)
//   }
//   if (row < m && col < n)
//     c[row * n + col] = sum;
//
// Legal: a read finds what one known thread has stored since the last barrier. That value is computed from indices,
// parameters, counters of loops around, and arrays that the kernel does not write and that do not overlap what it
// writes (proved, or a condition). Barriers serve nothing else: what the kernel writes it accesses after the last
// barrier only. The block shape is a condition.
//
// Refuses: folds, scans, and whatever else updates shared memory in place; cells that nobody may have stored, or that
// several threads store with different values; reads of what an earlier iteration stored. It also refuses threads that
// leave early, values that change, vectors over elements (`*(float4 *)&s[i]`), and a block shape that is not known.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KnownConditions.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/SharedCells.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/CanonicalForm.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Canonicalize/Inductions.h"
#include "optiml/Canonicalize/StripLoops.h"
#include "optiml/Canonicalize/ThreadSplit.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
class UnstageShared : public Transform {
public:
  llvm::StringRef name() const override { return "unstage-shared"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override;
};
} // namespace

/// Barriers order nothing but the arrays in shared memory: global memory that the kernel writes it accesses after the
/// last.
static llvm::Error requireIdleBarriers(Kernel &kernel, const KernelModel &model) {
  std::map<const Stmt *, unsigned> position;
  unsigned count = 0, last = 0;
  std::set<const Stmt *> around; // loops that hold a barrier
  walk(*kernel.body, [&](Stmt &s) {
    position[&s] = ++count;
    if (s.init)
      position[s.init.get()] = count;
    if (s.kind == StmtKind::Barrier)
      last = count;
    bool loop = isLoop(s);
    if (loop && hasBarrier(s))
      around.insert(&s);
  });
  for (const Access &access : model.accesses()) {
    bool ordered =
        position[access.stmt] < last || llvm::any_of(access.path, [&](const Stmt *s) { return around.count(s) != 0; });
    if (access.space == Space::Global && model.writesArray(access.array) && ordered)
      return notApplicable("barriers may order accesses to '{0}' (line {1})", access.array, access.stmt->line);
  }
  return llvm::Error::success();
}

static void removeStatements(Kernel &kernel, const std::set<const Stmt *> &which) {
  auto without = [&](std::vector<StmtRef> &list) {
    std::erase_if(list, [&](const StmtRef &s) {
      bool empty = s->kind == StmtKind::If || asCountedLoop(*s); // only what had nothing but such statements in it
      for (const StmtRef &child : s->body)
        empty &= child->body.empty();
      return which.count(s.get()) || s->kind == StmtKind::Barrier || (s->kind == StmtKind::Decl && s->isShared) ||
             empty;
    });
  };
  std::function<void(Stmt &)> visit = [&](Stmt &s) { // inner lists first
    for (StmtRef &child : s.body)
      visit(*child);
    if (s.kind == StmtKind::Block)
      without(s.body);
  };
  visit(*kernel.body);
}

/// Writes every index of global memory with global indices where it moves with them, whatever terms it was made of.
static void useGlobalIndices(Kernel &kernel, const std::array<int64_t, 3> &shape) {
  normalizeGlobalIndex(kernel, shape);
  KernelModel model(kernel);
  std::map<const Expr *, ExprRef> replacement;
  for (const Access &access : model.accesses()) {
    if (access.space != Space::Global || access.subscripts.size() != 1)
      continue;
    Poly index = access.subscripts[0];
    bool joined = false;
    for (unsigned axis = 0; axis < 3; ++axis) {
      std::string suffix = std::string(".") + char('x' + axis);
      auto perBlock = index.coefficient("blockIdx" + suffix), perThread = index.coefficient("threadIdx" + suffix);
      if (!perBlock || !perThread || perThread->terms.empty() || !(*perBlock == Poly(shape[axis]) * *perThread))
        continue;
      index = index - *perBlock * Poly::atom("blockIdx" + suffix) - *perThread * Poly::atom("threadIdx" + suffix) +
              *perThread * Poly::atom("globalIdx" + suffix);
      joined = true;
    }
    if (joined)
      replacement[access.node.get()] = elementExpr(model, access, index);
  }
  replaceNodes(*kernel.body, replacement);
  lowerGlobalIndex(kernel);
  removeUnused(kernel);
}

/// `result.tree` without its tiles; the block shape is that of the hints.
static llvm::Expected<KernelState> unstaged(KernelState result) {
  const std::array<int64_t, 3> shape = result.hints.block;
  auto kernel = result.tree->clone();
  rewriteExprs(*kernel->body, [&](const ExprRef &e) -> ExprRef {
    bool extent = e->kind == ExprKind::Builtin && e->text.starts_with("blockDim.");
    return extent ? intLit(shape[size_t(e->text.back() - 'x')], e->type) : nullptr;
  });
  canonicalize(*kernel);
  inlinePointerLocals(*kernel);
  replaceInductions(*kernel, shape);
  if (llvm::Error e = requireConstantParameters(*kernel))
    return std::move(e);

  std::set<std::string> sources;
  {
    KernelModel model(*kernel, shape);
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    SharedCells cells(*kernel, model, shape);
    if (llvm::Error e = cells.collect())
      return std::move(e);
    if (!cells.any())
      return notApplicable("nothing in shared memory is used");
    std::map<const Expr *, ExprRef> replacement;
    for (const Access &access : model.accesses())
      if (access.space == Space::Shared && access.read) {
        auto value = cells.valueAt(access);
        if (!value)
          return value.takeError();
        replacement[access.node.get()] = *value;
      }
    for (const Access *load : cells.loads()) {
      if (load->space != Space::Global || model.writesArray(load->array))
        return notApplicable("what is staged of '{0}' may change before it is used (line {1})", load->array,
                             load->stmt->line);
      if (!isConstantOfFile(model, *load))
        sources.insert(load->array);
    }
    if (llvm::Error e = requireIdleBarriers(*kernel, model))
      return std::move(e);
    std::set<const Stmt *> stores = cells.storeStatements();
    replaceNodes(*kernel->body, replacement);
    removeStatements(*kernel, stores);
  }
  removeUnused(*kernel);

  mergeStrips(result, *kernel, shape);
  sinkUnderLastGuard(*kernel);
  simplifyConditions(result, *kernel, shape);
  useGlobalIndices(*kernel, shape);
  // What the arrays' ranges are is plain from here on only.
  result.tree = result.original = kernel;
  KernelModel model(*kernel);
  if (llvm::Error e = requireDisjointFromWritten(result, model, sources))
    return std::move(e);
  return result;
}

/// Every axis is used through its global index.
static bool isGlobal(const KernelState &state) {
  auto kernel = state.tree->clone();
  return llvm::none_of(normalizeGlobalIndex(*kernel, {0, 0, 0}), [](const AxisUse &use) { return use.other; });
}

llvm::Expected<KernelState> UnstageShared::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  const std::array<int64_t, 3> shape = state.hints.block;
  if (!anyStmt(*state.tree->body, [](const Stmt &s) { return s.isShared; }))
    return notApplicable("the kernel has no shared memory");
  if (state.isPinned())
    return notApplicable("{0}", shapeIsFixed);
  if (!shape[0] || !shape[1] || !shape[2])
    return notApplicable("the shape of the block is not known");
  auto kernel = state.tree->clone();
  if (llvm::Error e = removeReturns(*kernel))
    return std::move(e);
  if (auto split = findThreadSplit(*kernel, shape))
    for (bool quotientAlongX : {false, true}) {
      KernelState trial = state;
      auto twoAxes = kernel->clone();
      splitThreads(trial, *twoAxes, *split, quotientAlongX);
      trial.tree = twoAxes;
      auto result = unstaged(std::move(trial));
      if (!result)
        llvm::consumeError(result.takeError());
      else if (isGlobal(*result))
        return result;
    }
  KernelState result = state.withTree(kernel);
  result.requireBlock(shape, "its tiles are written for this block shape");
  return unstaged(std::move(result));
}

DEFINE_TRANSFORM(UnstageShared)
