//===- BlockRows.cpp - blocks as rows, their threads as columns -----------===//
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Stands for a block's number until the rows have their axis.
static constexpr const char *rowName = "#block";

/// The axes of the launch that the kernel does not look at, if one is left for the blocks.
static std::optional<unsigned> freeAxis(const KernelState &state, const Kernel &kernel) {
  for (unsigned axis : {1u, 2u})
    if (builtinsOf(kernel, axis).empty() && state.hints.grid[axis] <= 1 && state.hints.block[axis] <= 1)
      return axis;
  return std::nullopt;
}

/// Asks along the axis where its block is, otherwise than for where the thread is among all. `block`: its shape, which
/// may stand in the kernel as constants.
static bool asksForBlock(const Kernel &kernel, unsigned axis, const std::array<int64_t, 3> &block) {
  const std::set<std::string> used = builtinsOf(kernel, axis);
  if (block[axis] <= 1 || !used.count("blockIdx") || !used.count("threadIdx") || used.count("gridDim"))
    return false;
  auto copy = kernel.clone();
  normalizeGlobalIndex(*copy, block);
  return anyExpr(*copy->body, [&](const ExprRef &e) { return isBuiltin(e, axisName("blockIdx", axis)); });
}

/// Other blocks may have threads beyond the widths: they do nothing.
static void boundColumns(Kernel &kernel, const ExprRef &bound) {
  std::vector<StmtRef> &list = kernel.body->body;
  auto first = llvm::find_if(list, [](const StmtRef &s) {
    return s->kind != StmtKind::Decl || (s->expr && (hasEffects(s->expr) || anyNode(s->expr, isLoad)));
  });
  if (first != list.end() && first + 1 == list.end() && (*first)->kind == StmtKind::If && (*first)->body.size() == 1) {
    (*first)->expr = logicalAnd(bound, (*first)->expr);
    return;
  }
  StmtRef rest = ifStmt(bound, block(std::vector<StmtRef>(first, list.end())));
  list.erase(first, list.end());
  list.push_back(rest);
}

/// A loop in which the threads of a block take turns along the axis.
static bool takesTurns(const Stmt &s, unsigned axis) {
  return s.kind == StmtKind::For && s.step &&
         anyNode(s.step, [&](const ExprRef &e) { return isBuiltin(e, axisName("blockDim", axis)); });
}

/// Along the axis there are the block's threads alone from now on. Returned is what bounds them; null where they take
/// turns, as they then do among all of their row.
static ExprRef keepColumns(Kernel &kernel, unsigned axis, int64_t width) {
  static constexpr const char *ofRow = "#row";
  const bool takeTurns = anyStmt(*kernel.body, [&](const Stmt &s) { return takesTurns(s, axis); });
  walk(*kernel.body, [&](Stmt &s) {
    if (takesTurns(s, axis))
      s.step = substitute(s.step, {{axisName("blockDim", axis), var(ofRow, axisBuiltin("blockDim", axis)->type)}});
  });
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    return isBuiltin(e, axisName("blockDim", axis)) ? castTo(e->type, intLit(width)) : nullptr;
  });
  substitute(*kernel.body, {{axisName("threadIdx", axis), globalIndexExpr(axis)}});
  substitute(*kernel.body, {{ofRow, mul(axisBuiltin("blockDim", axis), axisBuiltin("gridDim", axis))}});
  return takeTurns ? nullptr : lessThan(globalIndexExpr(axis), intLit(width));
}

void optiml::separateBlocks(KernelState &state, Kernel &kernel) {
  std::array<IntExpr, 3> &grid = state.rewrite.plan.steps[0].grid;
  const std::array<int64_t, 3> shape = state.hints.block;
  std::vector<unsigned> axes;
  for (unsigned axis : {0u, 1u})
    if (grid[axis] == state.blocks[axis] && asksForBlock(kernel, axis, shape))
      axes.push_back(axis);
  const std::optional<unsigned> rows = axes.empty() ? std::nullopt : freeAxis(state, kernel);
  const int64_t lines = state.hints.grid[0]; // of blocks, where both axes ask
  if (!rows || (axes.size() > 1 && lines < 1) || threadsWorkTogether(kernel))
    return;
  // Columns are bounded by a condition, in which no return may stand.
  const bool takeTurns =
      axes.size() == 1 && anyStmt(*kernel.body, [&](const Stmt &s) { return takesTurns(s, axes[0]); });
  if (!takeTurns) {
    auto copy = kernel.clone();
    if (llvm::Error e = removeReturns(*copy))
      return llvm::consumeError(std::move(e));
    kernel.body = copy->body;
  }
  state.require(threadsAlong(*rows) + " == 1", "the kernel does not look at this axis");
  std::string blocks;
  std::map<std::string, ExprRef> places;
  IntExpr all = grid[axes[0]];
  for (unsigned axis : axes) {
    const std::string name(1, char('x' + axis));
    state.require("block." + name + " == " + std::to_string(shape[axis]),
                  "the kernel is written for this width of a block");
    blocks += (blocks.empty() ? "grid." : " * grid.") + name;
  }
  if (axes.size() > 1) {
    state.require("grid.x == " + std::to_string(lines), "the kernel is written for so many blocks in a line");
    const ExprRef line = castTo(axisBuiltin("blockIdx", 0)->type, intLit(lines));
    places = {{axisName("blockIdx", 0), binary("%", var(rowName, line->type), line)},
              {axisName("blockIdx", 1), binary("/", var(rowName, line->type), line)}};
    all = IntExpr::of("(" + grid[0].str() + ") * (" + grid[1].str() + ")");
  } else {
    places = {{axisName("blockIdx", axes[0]), var(rowName, axisBuiltin("blockIdx", 0)->type)}};
  }
  state.require(blocks + " <= 65535", "a grid cannot be larger");
  substitute(*kernel.body, places);
  ExprRef bound;
  for (unsigned axis : axes)
    if (ExprRef own = keepColumns(kernel, axis, shape[axis]))
      bound = bound ? logicalAnd(bound, own) : own;
  if (bound)
    boundColumns(kernel, bound);
  substitute(*kernel.body, {{rowName, globalIndexExpr(*rows)}});
  int64_t count = 1;
  for (unsigned axis : axes) {
    count *= state.hints.grid[axis];
    grid[axis] = state.blocks[axis] = IntExpr::literal(1);
    state.hints.grid[axis] = 1;
  }
  grid[*rows] = state.blocks[*rows] = all;
  state.hints.grid[*rows] = count;
}
