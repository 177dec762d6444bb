//===- ThreadMapping.cpp - which thread does which work -------------------===//
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/DoLoops.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>

using namespace optiml;

void optiml::removeUnused(Kernel &kernel) {
  for (bool changed = true; changed;) {
    changed = false;
    std::map<std::string, unsigned> uses;
    walkExprs(*kernel.body, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Var)
        ++uses[e->text];
      for (const std::string &name : e->names)
        ++uses[name];
    });
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Opaque)
        for (const std::string &name : s.names)
          ++uses[name];
    });
    forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
      std::erase_if(list, [&](const StmtRef &s) {
        if (s->kind != StmtKind::Decl || s->isExtern || s->type.isVolatile || uses.count(s->text))
          return false;
        bool pure = !s->expr || !hasEffects(s->expr);
        changed |= pure;
        return pure;
      });
    });
  }
}

/// A comparison takes a signed name of the bound as unsigned: less than zero is then more than everything.
static bool comparedAsUnsigned(const Kernel &kernel, const Poly &bound) {
  static const llvm::StringSet<> comparisons = {"<", "<=", ">", ">="};
  return anyExpr(*kernel.body, [&](const ExprRef &e) {
    return e->kind == ExprKind::Binary && comparisons.contains(e->text) && anyNode(e, [&](const ExprRef &n) {
             const bool named = n->kind == ExprKind::Var || n->kind == ExprKind::Member;
             return named && n->type.isSigned && bound.atoms().count(str(n)) &&
                    (!e->args[0]->type.isSigned || !e->args[1]->type.isSigned);
           });
  });
}

void optiml::requireCover(KernelState &state, const KernelModel &model, unsigned axis, int64_t tile) {
  std::string threads = threadsAlong(axis);
  auto bound = globalUpperBound(model, axis);
  auto text = bound ? planText(model, *bound) : std::nullopt;
  if (text && (bound->terms.size() > 1 || comparedAsUnsigned(*state.tree, *bound)) && !bound->constant())
    state.require(*text + " >= 0", "an empty range stays empty, whatever the signs of the types");
  if (text)
    state.require(*text + " <= " + threads, "the launch covers every index, so threads beyond it do nothing");
  else
    state.require("(" + threads + ") % " + std::to_string(tile) + " == 0",
                  "the new blocks hold exactly the threads of the launch");
}

/// A kernel that one thread runs alone does not say so: under the condition that is recorded it is the first one.
static void guardSingleThread(KernelState &state, Kernel &kernel) {
  auto index = [](const std::string &text) {
    return text.find("Idx") != std::string::npos || text.find("Dim.") != std::string::npos;
  };
  if (anyExpr(*kernel.body,
              [&](const ExprRef &e) {
                return e->kind == ExprKind::Builtin || (e->kind == ExprKind::Opaque && index(e->text));
              }) ||
      anyStmt(*kernel.body, [&](const Stmt &s) { return s.kind == StmtKind::Opaque && index(s.text); }))
    return;
  state.require("grid.x * block.x == 1", "the kernel is written for one thread");
  kernel.body = block({ifStmt(lessThan(axisBuiltin("globalIdx", 0), intLit(1)), kernel.body)});
}

void optiml::useBlockExtents(KernelState &state, Kernel &kernel) {
  bool found = false;
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (!isBinary(e, "*") || !e->type.isInt())
      return nullptr;
    for (unsigned axis = 0; axis < 3; ++axis)
      for (unsigned side : {0, 1}) {
        const ExprRef &places = e->args[side];
        bool counts = isBuiltin(places, axisName("blockIdx", axis)) || isBuiltin(places, axisName("gridDim", axis));
        if (!counts || !state.hints.block[axis] || constantValue(e->args[1 - side]) != state.hints.block[axis])
          continue;
        found = true;
        return binary("*", places, axisBuiltin("blockDim", axis));
      }
    return nullptr;
  });
  if (found)
    state.requireBlock(state.hints.block, "the kernel is written for this block shape");
}

llvm::Error optiml::requireSameMemory(const Kernel &kernel) {
  for (const Param &p : kernel.params)
    if (p.type.pointee && p.type.pointee->isVolatile)
      return notApplicable("the kernel reads volatile memory, which may differ between threads");
  return llvm::Error::success();
}

llvm::Error optiml::requireDisjointFromWritten(KernelState &state, const KernelModel &model,
                                               const std::set<std::string> &arrays) {
  std::set<std::string> written;
  for (const Access &access : model.accesses())
    if (access.write && access.space == Space::Global)
      written.insert(access.array);
  for (const std::string &array : arrays)
    for (const std::string &target : written)
      if (llvm::Error e = requireDisjoint(state, model, array, target))
        return e;
  return llvm::Error::success();
}

bool optiml::accessesNeighbours(const Access &access, const std::string &index) {
  if (access.space != Space::Global || access.subscripts.empty())
    return false;
  auto factor = access.subscripts.back().coefficient(index);
  auto c = factor ? factor->constant() : std::nullopt;
  return c && *c != 0 && std::abs(*c) <= 4;
}

void optiml::setBlocks(KernelState &state, unsigned axis, const IntExpr &blocks) {
  if (axis > 0)
    state.require(IntExpr::of(blocks.str() + " <= 65535"), "a grid cannot be larger");
  state.blocks[axis] = state.rewrite.plan.steps[0].grid[axis] = blocks;
  LaunchHints &hints = state.hints;
  LaunchHints known = hints;
  for (unsigned a = 0; a < 3; ++a)
    known.scalars[axisName("block", a)] = hints.block[a];
  if (auto count = known.evaluate(blocks); count && hints.grid[0] && hints.block[0])
    hints.grid[axis] = *count;
}

bool optiml::fewThreads(const LaunchHints &hints) {
  double threads = 1, ofMultiprocessor = 2048;
  for (unsigned a = 0; a < 3; ++a)
    threads *= double(hints.grid[a]) * double(hints.block[a]);
  return threads < ofMultiprocessor * hints.multiprocessors;
}

bool optiml::usesGlobalIndex(const Kernel &kernel, unsigned axis) {
  return anyExpr(*kernel.body, [&](const ExprRef &e) { return isBuiltin(e, axisName("globalIdx", axis)); });
}

/// The innermost statement by which threads may meet, if `s` holds any.
static const Stmt &meetingIn(const Stmt &s, Kept kept) {
  for (const StmtRef &child : s.body)
    if (threadsMayMeet(*child, kept))
      return meetingIn(*child, kept);
  return s;
}

static std::string nameOfMeeting(const Stmt &s) {
  if (s.kind == StmtKind::Barrier)
    return "__syncthreads";
  std::string result;
  walkExprs(const_cast<Stmt &>(s), [&](const ExprRef &e) {
    if (result.empty() && e->kind == ExprKind::Call && !e->pure && !e->isConfined)
      result = "a call of '" + e->text + "'";
    else if (result.empty() && e->type.isVolatile && e->kind != ExprKind::Var)
      result = "volatile memory";
  });
  return result.empty() ? "text that is kept as it is" : result;
}

llvm::Error optiml::requireApart(const Kernel &kernel, Kept kept) {
  static constexpr llvm::StringLiteral why = "the kernel's threads work together, or wait for each other";
  if (threadsMayMeet(*kernel.body, kept)) {
    const Stmt &s = meetingIn(*kernel.body, kept);
    return notApplicable("{0}: {1} (line {2})", why, nameOfMeeting(s), s.line);
  }
  std::string shared;
  walk(*kernel.body, [&](Stmt &s) { shared = s.isShared ? s.text : shared; });
  return shared.empty() ? llvm::Error::success() : notApplicable("{0}: '{1}' is in shared memory", why, shared);
}

llvm::Expected<std::shared_ptr<Kernel>> optiml::remappable(KernelState &state, unsigned axes, int64_t threads,
                                                           bool batches, Kept kept) {
  if (state.isPinned())
    return notApplicable("{0}", shapeIsFixed);
  if (state.tree->maxThreads && threads > state.tree->maxThreads)
    return notApplicable("the kernel is bounded to {0} threads a block", state.tree->maxThreads);
  auto kernel = state.tree->clone();
  if (llvm::Error e = requireConstantParameters(*kernel))
    return std::move(e);
  if (llvm::Error e = requireApart(*kernel, kept))
    return std::move(e);
  if (llvm::Error e = removeReturns(*kernel))
    return std::move(e);
  if (axes == 1)
    guardSingleThread(state, *kernel);
  countDoLoops(state, *kernel);
  useBlockExtents(state, *kernel);
  adoptPlainIndices(state, *kernel);
  std::array<AxisUse, 3> uses = normalizeGlobalIndex(*kernel, {0, 0, 0});
  for (unsigned axis = 0; axis < 3; ++axis)
    if (uses[axis].other || (axis < axes ? !uses[axis].global : uses[axis].global && !batches))
      return axes == 1 ? notApplicable("the kernel uses more than its global index along x")
                       : notApplicable("the kernel does not use x and y through their global indices alone");
  return kernel;
}

/// Leaves the axes as globalIdx.a. NotApplicable where the kernel depends on its own block shape.
static llvm::Expected<std::array<AxisUse, 3>> normalizeAxes(KernelState &state, Kernel &kernel, Kept kept) {
  std::array<int64_t, 3> pinned = state.pinnedBlock();
  if (llvm::Error e = requireApart(kernel, kept))
    return std::move(e);
  if (!pinned[0])
    adoptPlainIndices(state, kernel);
  std::array<AxisUse, 3> uses = normalizeGlobalIndex(kernel, pinned);
  bool literal = uses[0].other || uses[1].other || uses[2].other;
  if (literal && !pinned[0] && state.hints.block[0]) {
    // The source may write the block's extents as constants: then it holds for launches of that shape.
    uses = normalizeGlobalIndex(kernel, state.hints.block);
    state.requireBlock(state.hints.block, "the kernel is written for this block shape");
  }
  for (unsigned axis = 0; axis < 3; ++axis)
    if (uses[axis].other)
      return notApplicable("axis {0} is used other than through the global index (line {1})", char('x' + axis),
                           uses[axis].otherLine);
  if (!uses[0].global && !uses[1].global && !uses[2].global)
    return notApplicable("the kernel does not use a global index");
  if (llvm::Error e = removeReturns(kernel))
    return std::move(e);
  return uses;
}

/// How many adjacent indices a thread has along an axis.
static int64_t adjacentCopies(const CopyAxis &c) {
  return c.piece > 1 ? std::min(c.piece, c.factor) : c.distance == 1 ? c.factor : 1;
}

/// The loops over a thread's copies, x innermost; pieces get a loop of their own around.
static llvm::Expected<std::vector<CopyAxis>> loopsOverCopies(const Kernel &kernel, const std::array<AxisUse, 3> &uses,
                                                             const std::array<int64_t, 3> &shape,
                                                             const std::array<CopyAxis, 3> &copies) {
  std::vector<CopyAxis> loops;
  for (unsigned axis = 3; axis-- > 0;)
    if (copies[axis].factor > 1) {
      if (!uses[axis].global)
        return notApplicable("axis {0} is not used", char('x' + axis));
      CopyAxis whole = copies[axis];
      whole.axis = axis;
      int64_t width = adjacentCopies(whole);
      if (width > 1)
        whole.distance = 1;
      if (width > 1 && width < whole.factor) {
        std::string apart = freshName(kernel, std::string("j") + char('x' + axis));
        loops.push_back({axis, whole.factor / width, shape[axis] * width, apart});
        whole.factor = width;
      }
      loops.push_back(whole);
    }
  return loops;
}

/// The new geometry, and why the threads beyond the original ones are harmless.
static llvm::Error setGeometry(KernelState &state, const KernelModel &model, const std::array<AxisUse, 3> &uses,
                               const std::array<int64_t, 3> &shape, const std::array<CopyAxis, 3> &copies) {
  std::array<int64_t, 3> pinned = state.pinnedBlock();
  LaunchStep &step = state.rewrite.plan.steps[0];
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string threads = threadsAlong(axis);
    if (!uses[axis].global) {
      if (shape[axis] != 1)
        return notApplicable("axis {0} is not used, so its extent must stay 1", char('x' + axis));
      requireOneCopy(state, axis);
      step.grid[axis] = IntExpr::literal(1);
      step.block[axis] = IntExpr::literal(1);
      continue;
    }
    if (IntExpr now = step.grid[axis];
        !(now == state.blocks[axis]) &&
        !(now == state.overOriginal("ceildiv(" + threads + ", " + std::to_string(pinned[axis]) + ")")))
      return notApplicable("axis {0} is coarsened already", char('x' + axis));
    int64_t tile = shape[axis] * copies[axis].factor;
    step.grid[axis] = state.overOriginal("ceildiv(" + threads + ", " + std::to_string(tile) + ")");
    step.block[axis] = IntExpr::literal(shape[axis]);
    if (axis > 0) // x may be up to 2^31 - 1, which int indices do not reach
      state.require(IntExpr::of(step.grid[axis].str() + " <= 65535"), "a grid cannot be larger");
    if (tile > 1)
      requireCover(state, model, axis, tile);
  }
  return llvm::Error::success();
}

llvm::Error optiml::remapThreads(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &shape,
                                 const std::array<CopyAxis, 3> &copies, const MergeCopies &merge) {
  const bool onlyMoves = llvm::all_of(copies, [](const CopyAxis &c) { return c.factor == 1; });
  auto uses = normalizeAxes(state, kernel, merge ? Kept::Nothing : onlyMoves ? Kept::Statements : Kept::Order);
  if (!uses)
    return uses.takeError();
  auto loops = loopsOverCopies(kernel, *uses, shape, copies);
  if (!loops)
    return loops.takeError();
  if (!loops->empty())
    inlinePointerLocals(kernel);
  if (!merge)
    for (const CopyAxis &c : *loops) {
      int64_t factor = copies[c.axis].factor, adjacent = adjacentCopies(copies[c.axis]);
      takeQuotientsOfFirst(state, kernel, c.axis, shape[c.axis] * factor, adjacent == factor ? adjacent : 1);
    }
  {
    KernelModel model(kernel, {0, 0, 0});
    if (llvm::Error e = setGeometry(state, model, *uses, shape, copies))
      return e;
    if (llvm::Error e = merge ? merge(state, kernel, model) : llvm::Error::success())
      return e;
  }
  if (!merge && !loops->empty()) {
    for (const CopyAxis &c : countedLoops(kernel).empty() ? std::vector<CopyAxis>() : *loops) {
      int64_t factor = copies[c.axis].factor, adjacent = adjacentCopies(copies[c.axis]);
      takeBoundsOfFirst(state, kernel, c.axis, shape[c.axis] * factor, adjacent == factor ? adjacent : 1);
    }
    KernelModel model(kernel, {0, 0, 0});
    auto body = Distributor(kernel, model, *loops, 0, [](Stmt &) { return true; }).run();
    if (!body)
      return body.takeError();
    kernel.body = *body;
  }
  auto firstIndex = [&](unsigned axis, bool ofThread) {
    ExprRef first = mul(axisBuiltin("blockIdx", axis), intLit(shape[axis] * copies[axis].factor));
    if (shape[axis] == 1 || !ofThread)
      return first;
    return add(first, mul(axisBuiltin("threadIdx", axis), intLit(adjacentCopies(copies[axis]))));
  };
  lowerGlobalIndex(kernel, [&](unsigned axis) { return firstIndex(axis, /*ofThread=*/true); });
  lowerFirstIndices(kernel, firstIndex);
  removeUnused(kernel);
  return llvm::Error::success();
}
