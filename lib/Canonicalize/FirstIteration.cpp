//===- FirstIteration.cpp - extremes that begin with an element -----------===//
#include "optiml/Canonicalize/FirstIteration.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"
#include <set>

using namespace optiml;

/// What the body makes of `m` in an iteration, if it is better: "if (e > m) m = e;" and "m = fmaxf(m, e);" give e; null
/// where the body is another.
static ExprRef candidateOf(const Stmt &body, const std::string &m) {
  const Stmt *s = onlyStatement(body);
  if (!s)
    return nullptr;
  ExprRef condition;
  if (s->kind == StmtKind::If && s->body.size() == 1) {
    condition = s->expr;
    s = onlyStatement(*s->body[0]);
  }
  if (!s || s->kind != StmtKind::Expr || s->expr->kind != ExprKind::Assign || s->expr->text != "=" ||
      !isVar(s->expr->args[0], m))
    return nullptr;
  const ExprRef &value = s->expr->args[1];
  auto other = [&](const ExprRef &e) -> ExprRef { // of two operands, one of which is m
    if (e->args.size() != 2 || isVar(e->args[0], m) == isVar(e->args[1], m))
      return nullptr;
    return e->args[isVar(e->args[0], m) ? 1 : 0];
  };
  if (condition) {
    static const std::set<std::string> orders = {"<", ">", "<=", ">="};
    ExprRef compared =
        condition->kind == ExprKind::Binary && orders.count(condition->text) ? other(condition) : nullptr;
    return compared && equal(compared, value) ? value : nullptr;
  }
  static const std::set<std::string> extremes = {"min", "max", "::min", "::max", "fminf", "fmaxf", "fmin", "fmax"};
  return value->kind == ExprKind::Call && value->isLibrary && extremes.count(value->text) ? other(value) : nullptr;
}

/// What the variable holds right before the statement at `end`; null where that is not known.
static ExprRef valueBefore(const std::vector<StmtRef> &list, size_t end, const std::string &m) {
  for (size_t i = end; i-- > 0;) {
    const Stmt &s = *list[i];
    if (s.kind == StmtKind::Decl && s.text == m)
      return s.expr;
    if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->text == "=" &&
        isVar(s.expr->args[0], m))
      return s.expr->args[1];
    // Nothing in between may change what it was read from.
    if (s.kind != StmtKind::Decl || (s.expr && !onlyComputes(s.expr)))
      return nullptr;
  }
  return nullptr;
}

void optiml::beginAtFirstElement(Kernel &kernel) {
  const KernelModel model(kernel);
  std::vector<std::pair<Stmt *, int64_t>> found;
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      auto counted = list[i]->kind == StmtKind::For ? asCountedLoop(*list[i]) : std::nullopt;
      auto lower = counted ? constantValue(counted->lower) : std::nullopt;
      if (!lower || *lower < 1 || counted->step != 1)
        continue;
      std::string m;
      walkExprs(*list[i]->body[0], [&](const ExprRef &e) {
        if (e->kind == ExprKind::Assign && e->args[0]->kind == ExprKind::Var)
          m = e->args[0]->text;
      });
      ExprRef candidate = m.empty() ? nullptr : candidateOf(*list[i]->body[0], m);
      ExprRef start = candidate ? valueBefore(list, i, m) : nullptr;
      if (!start || !onlyComputes(candidate) || mentions(candidate, m))
        continue;
      // The same element, whatever its index is spelled like.
      ExprRef first = substitute(candidate, {{counted->var, intLit(*lower - 1, counted->type)}});
      if (model.poly(first) == model.poly(start) && first->type.text == start->type.text)
        found.emplace_back(list[i].get(), *lower - 1);
    }
  });
  for (const auto &[loop, lower] : found)
    loop->init->expr = intLit(lower, loop->init->type);
}
