//===- BlockRows.cpp - blocks as rows, their threads as columns -----------===//
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// The axes of the launch that the kernel does not look at, if one is left for the blocks.
static std::optional<unsigned> freeAxis(const KernelState &state, const Kernel &kernel) {
  for (unsigned axis : {1u, 2u})
    if (builtinsOf(kernel, axis).empty() && state.hints.grid[axis] <= 1 && state.hints.block[axis] <= 1)
      return axis;
  return std::nullopt;
}

/// Asks where its block is, otherwise than for where the thread is among all. `block`: its shape, which may stand in
/// the kernel as constants.
static bool asksForBlock(const Kernel &kernel, const std::array<int64_t, 3> &block) {
  const std::set<std::string> used = builtinsOf(kernel, 0);
  if (!used.count("blockIdx") || !used.count("threadIdx") || used.count("gridDim"))
    return false;
  auto copy = kernel.clone();
  normalizeGlobalIndex(*copy, block);
  return anyExpr(*copy->body, [](const ExprRef &e) { return isBuiltin(e, axisName("blockIdx", 0)); });
}

/// Other blocks may have threads beyond the width: they do nothing.
static void boundColumns(Kernel &kernel, int64_t width) {
  const ExprRef bound = lessThan(axisBuiltin("threadIdx", 0), intLit(width));
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

void optiml::separateBlocks(KernelState &state, Kernel &kernel) {
  std::array<IntExpr, 3> &grid = state.rewrite.plan.steps[0].grid;
  const int64_t width = state.hints.block[0];
  const std::optional<unsigned> rows = freeAxis(state, kernel);
  if (width <= 1 || !rows || !(grid[0] == state.blocks[0]) || !asksForBlock(kernel, state.hints.block) ||
      threadsWorkTogether(kernel))
    return;
  // Columns are bounded by a condition, in which no return may stand.
  auto turns = [](const Stmt &s) {
    return s.kind == StmtKind::For && s.step &&
           anyNode(s.step, [](const ExprRef &e) { return isBuiltin(e, axisName("blockDim", 0)); });
  };
  const bool takeTurns = anyStmt(*kernel.body, turns);
  if (!takeTurns) {
    auto copy = kernel.clone();
    if (llvm::Error e = removeReturns(*copy->body))
      return llvm::consumeError(std::move(e));
    kernel.body = copy->body;
  }
  state.require(threadsAlong(*rows) + " == 1", "the kernel does not look at this axis");
  state.require("block.x == " + std::to_string(width), "the kernel is written for this width of a block");
  state.require("grid.x <= 65535", "a grid cannot be larger");
  // Threads that take turns within their block do so among all of their row.
  static constexpr const char *ofRow = "#row";
  walk(*kernel.body, [&](Stmt &s) {
    if (turns(s))
      s.step = substitute(s.step, {{axisName("blockDim", 0), var(ofRow, axisBuiltin("blockDim", 0)->type)}});
  });
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    return isBuiltin(e, axisName("blockDim", 0)) ? castTo(e->type, intLit(width)) : nullptr;
  });
  if (!takeTurns)
    boundColumns(kernel, width);
  substitute(*kernel.body,
             {{axisName("blockIdx", 0), globalIndexExpr(*rows)}, {axisName("threadIdx", 0), globalIndexExpr(0)}});
  substitute(*kernel.body, {{ofRow, mul(axisBuiltin("blockDim", 0), axisBuiltin("gridDim", 0))}});
  grid[*rows] = state.blocks[*rows] = grid[0];
  grid[0] = state.blocks[0] = IntExpr::literal(1);
  state.hints.grid[*rows] = state.hints.grid[0];
  state.hints.grid[0] = 1;
}
