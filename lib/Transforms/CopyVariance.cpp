//===- CopyVariance.cpp - which copies of a local are alike ---------------===//
#include "CopyVariance.h"
#include "optiml/Analysis/TreeQueries.h"
#include <algorithm>

using namespace optiml;

CopyVariance::CopyVariance(const Kernel &kernel, const KernelModel &model) : model(model) {
  do {
    changed = false;
    visit(*kernel.body);
  } while (changed);
}

unsigned CopyVariance::ofName(const std::string &name) const {
  auto it = masks.find(name);
  return it == masks.end() ? model.variesName(name) : it->second;
}

unsigned CopyVariance::of(const ExprRef &e) const {
  unsigned mask = 0;
  walk(e, [&](const ExprRef &n) {
    if (n->kind == ExprKind::Var)
      mask |= ofName(n->text);
    else if (n->kind == ExprKind::Builtin)
      mask |= model.variesAtom(n->text);
    if (!n->pure || n->kind == ExprKind::Opaque)
      mask |= AnyThread | AnyBlock;
  });
  return mask;
}

void CopyVariance::raise(const std::string &name, unsigned mask) {
  unsigned &own = masks[name];
  changed |= (own | mask) != own;
  own |= mask;
}

/// Of what stands between the declaration and the statement at hand.
unsigned CopyVariance::conditionsSince(const std::string &name) const {
  auto depth = depths.find(name);
  unsigned mask = 0;
  for (size_t i = depth == depths.end() ? 0 : depth->second; i < conditions.size(); ++i)
    mask |= conditions[i];
  return mask;
}

void CopyVariance::raiseChanged(const ExprRef &e) {
  walk(e, [&](const ExprRef &n) {
    if (!n->pure)
      for (const std::string &name : changedWithin(*n))
        if (model.declaration(name))
          raise(name, AnyThread | AnyBlock);
    if (!isChange(n))
      return;
    unsigned mask = n->kind == ExprKind::Assign ? of(n->args[1]) : 0;
    const Expr *target = n->args[0].get();
    for (; target->kind == ExprKind::Subscript || target->kind == ExprKind::Member; target = target->args[0].get())
      if (target->kind == ExprKind::Subscript)
        mask |= of(target->args[1]);
    if (target->kind == ExprKind::Var && model.declaration(target->text))
      raise(target->text, mask | conditionsSince(target->text));
  });
}

void CopyVariance::visit(Stmt &s) {
  if (s.kind == StmtKind::Decl) {
    auto [depth, isNew] = depths.try_emplace(s.text, conditions.size());
    depth->second = std::min(depth->second, conditions.size()); // a name may be declared in several blocks
    raise(s.text, s.expr ? of(s.expr) : 0);
    if (s.isShared)
      raise(s.text, model.variesName(s.text));
  }
  if (s.kind == StmtKind::Opaque)
    for (const std::string &name : s.names)
      if (model.declaration(name))
        raise(name, AnyThread | AnyBlock);
  const bool isCounted = asCountedLoop(s).has_value(); // an iteration has its number, whoever makes it
  ownExprs(s, [&](ExprRef &e) {
    if (!isCounted || e != s.step)
      raiseChanged(e);
  });
  if (s.init)
    visit(*s.init);
  const bool tests = s.kind != StmtKind::Decl && s.kind != StmtKind::Expr && s.expr && !s.body.empty();
  if (tests)
    conditions.push_back(of(s.expr));
  if (tests && s.kind == StmtKind::For && s.step && !isCounted) // how often it runs decides what it counts to
    raiseChanged(s.step);
  for (const StmtRef &child : s.body)
    visit(*child);
  if (tests)
    conditions.pop_back();
}
