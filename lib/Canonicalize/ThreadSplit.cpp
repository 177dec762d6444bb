//===- ThreadSplit.cpp - two thread indices in place of one ---------------===//
#include "optiml/Canonicalize/ThreadSplit.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {
/// Part of a thread index: its quotient, or its remainder.
struct Part {
  bool quotient;
  int64_t divisor;
};
} // namespace

/// threadIdx.x, or a local that holds it.
static bool isThreadIndex(const KernelModel &model, const ExprRef &given) {
  const ExprRef e = withoutWideCasts(given);
  if (e->kind == ExprKind::Var)
    if (const Stmt *d = model.singleAssignment(e->text))
      return isThreadIndex(model, d->expr);
  return isBuiltin(e, "threadIdx.x");
}

static std::optional<Part> partOf(const KernelModel &model, const ExprRef &e) {
  if (e->kind != ExprKind::Binary || !e->type.isInt() || !isThreadIndex(model, e->args[0]))
    return std::nullopt;
  auto by = constantValue(e->args[1]);
  if (!by || *by < 1)
    return std::nullopt;
  if ((e->text == "/" || e->text == "%") && *by > 1)
    return Part{e->text == "/", *by};
  if (e->text == ">>" && *by < 11)
    return Part{true, int64_t(1) << *by};
  if (e->text == "&" && (*by & (*by + 1)) == 0)
    return Part{false, *by + 1};
  return std::nullopt;
}

std::optional<ThreadSplit> optiml::findThreadSplit(Kernel &kernel, const std::array<int64_t, 3> &block) {
  if (block[1] != 1 || block[2] != 1)
    return std::nullopt;
  KernelModel model(kernel, block);
  std::set<int64_t> divisors;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (auto part = partOf(model, e))
      divisors.insert(part->divisor);
  });
  if (divisors.size() != 1 || block[0] % *divisors.begin() || block[0] == *divisors.begin())
    return std::nullopt;
  return ThreadSplit{*divisors.begin(), block[0] / *divisors.begin()};
}

void optiml::splitThreads(KernelState &state, Kernel &kernel, const ThreadSplit &split, bool quotientAlongX) {
  KernelModel model(kernel, {split.divisor * split.quotients, 1, 1});
  ExprRef quotient = axisBuiltin("threadIdx", quotientAlongX ? 0 : 1),
          remainder = axisBuiltin("threadIdx", quotientAlongX ? 1 : 0);
  std::map<const Expr *, ExprRef> replacement;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (auto part = partOf(model, e))
      replacement[e.get()] = part->quotient ? quotient : remainder;
    else if (isBuiltin(e, "threadIdx.x"))
      replacement[e.get()] = add(mul(quotient, intLit(split.divisor, e->type)), remainder);
  });
  replaceNodes(*kernel.body, replacement);
  state.requireBlock({split.divisor * split.quotients, 1, 1}, "its tiles are written for this block shape");
  // As expressions: a shape of constants is one that the plan fixes.
  IntExpr across = state.overOriginal("block.x / " + std::to_string(split.quotients)),
          along = state.overOriginal("block.x / " + std::to_string(split.divisor));
  state.extents = {quotientAlongX ? along : across, quotientAlongX ? across : along, state.extents[2]};
  LaunchStep &step = state.rewrite.plan.steps[0];
  step.block = state.originalExtents = state.extents;
  state.hints.block = {quotientAlongX ? split.quotients : split.divisor,
                       quotientAlongX ? split.divisor : split.quotients, 1};
}
