//===- KnownConditions.cpp - conditions that are known where they stand ---===//
#include "optiml/Analysis/KnownConditions.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/IntegerSet.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdlib>

using namespace optiml;

bool optiml::follows(const Poly &p, std::vector<Poly> facts) {
  if (auto value = p.constant())
    return *value >= 0;
  facts.push_back(Poly(-1) - p);
  return isEmptySet(facts);
}

/// The text of `p` >= 0 without differences: "m <= n".
static std::string relation(const Poly &p) {
  Poly less, more;
  for (const auto &[monomial, coefficient] : p.terms) {
    Poly &side = coefficient > 0 ? more : less;
    side.terms[monomial] = std::abs(coefficient);
  }
  return less.str() + " <= " + more.str();
}

bool Assumptions::complete(const Poly &p, const std::vector<Poly> &facts) {
  for (const Poly &fact : facts) {
    Poly missing = p - fact;
    bool related = fact.atoms() != std::set<std::string>() && !missing.constant() && planText(model, missing) &&
                   !planText(model, p);
    if (!related || hints.evaluate(IntExpr::of(missing.str())).value_or(-1) < 0)
      continue;
    made.insert(relation(missing));
    return true;
  }
  return false;
}

void Assumptions::record(KernelState &state) const {
  for (const std::string &condition : made)
    state.require(condition, "what one of them bounds the other does too");
}

std::optional<bool> optiml::truth(const KernelModel &model, const ExprRef &condition, const std::vector<Poly> &facts,
                                  Assumptions *assume) {
  if (auto value = constantValue(condition))
    return *value != 0;
  if (isUnary(condition, "!")) {
    auto inner = truth(model, condition->args[0], facts, assume);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (condition->kind != ExprKind::Binary)
    return std::nullopt;
  if (condition->text == "&&" || condition->text == "||") {
    bool decides = condition->text == "||";
    auto a = truth(model, condition->args[0], facts, assume), b = truth(model, condition->args[1], facts, assume);
    if (a == decides || b == decides)
      return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }
  for (bool taken : {true, false}) { // the facts of one comparison are all that it says
    std::vector<Poly> says;
    model.addFacts(condition, taken, says);
    auto holds = [&](const Poly &p) { return follows(p, facts) || (assume && assume->complete(p, facts)); };
    if (!says.empty() && llvm::all_of(says, holds))
      return taken;
  }
  return std::nullopt;
}

/// `condition` without the parts of its conjunctions and disjunctions that are known.
static ExprRef remaining(const KernelModel &model, const ExprRef &condition, const std::vector<Poly> &facts,
                         Assumptions *assume) {
  if (auto known = truth(model, condition, facts, assume))
    return intLit(*known, Type::makeBool());
  if (condition->kind != ExprKind::Binary || (condition->text != "&&" && condition->text != "||"))
    return condition;
  ExprRef a = remaining(model, condition->args[0], facts, assume),
          b = remaining(model, condition->args[1], facts, assume);
  if (a->kind == ExprKind::IntLit) // a known part does not decide, or the whole would be known
    return b;
  if (b->kind == ExprKind::IntLit)
    return a;
  return a == condition->args[0] && b == condition->args[1] ? condition
                                                            : binary(condition->text, a, b, condition->type);
}

ExprRef optiml::simplified(const KernelModel &model, const ExprRef &e, const std::vector<Poly> &facts,
                           Assumptions *assume) {
  return rewrite(e, [&](const ExprRef &n) -> ExprRef {
    if (n->kind != ExprKind::Cond)
      return nullptr;
    ExprRef condition = remaining(model, n->args[0], facts, assume);
    auto value = constantValue(condition);
    if (!value)
      return condition == n->args[0] ? nullptr : conditional(condition, n->args[1], n->args[2]);
    const ExprRef &taken = n->args[*value ? 1 : 2];
    return taken->type.sameNumber(n->type) ? taken : castTo(n->type, taken);
  });
}

static void simplify(const KernelModel &model, Stmt &s, const std::vector<Poly> &facts, Assumptions &assume) {
  if (s.kind == StmtKind::Block) {
    std::vector<StmtRef> list;
    for (StmtRef &child : s.body) {
      simplify(model, *child, facts, assume);
      auto known = child->kind == StmtKind::If ? truth(model, child->expr, facts) : std::nullopt;
      if (!known)
        list.push_back(child);
      else if (*known || child->body.size() > 1)
        llvm::append_range(list, child->body[*known ? 0 : 1]->body);
    }
    s.body = std::move(list);
    return;
  }
  if (s.kind == StmtKind::While || s.kind == StmtKind::Do || s.kind == StmtKind::Opaque)
    return;
  std::vector<Poly> inside = facts;
  if (s.kind == StmtKind::For)
    model.addLoopFacts({&s}, inside);
  else
    ownExprs(s, [&](ExprRef &e) { e = simplified(model, e, facts, &assume); });
  for (size_t i = 0; i < s.body.size(); ++i) {
    std::vector<Poly> branch = inside;
    if (s.kind == StmtKind::If)
      model.addFacts(s.expr, i == 0, branch);
    simplify(model, *s.body[i], branch, assume);
  }
}

void optiml::simplifyConditions(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &block) {
  KernelModel model(kernel, block);
  StmtRef before = clone(kernel.body); // the model's statements go on living
  std::swap(before, kernel.body);
  Assumptions assume(state, model);
  std::vector<Poly> facts;
  model.addLoopFacts({}, facts);
  simplify(model, *kernel.body, facts, assume);
  assume.record(state);
}

/// Changes nothing but the thread's own variables.
static bool hasNoEffects(const Kernel &kernel, Stmt &s) {
  KernelModel model(kernel);
  bool plain = true;
  std::set<const Stmt *> within;
  walk(s, [&](Stmt &t) {
    within.insert(&t);
    plain &= t.kind != StmtKind::Opaque && t.kind != StmtKind::Barrier && t.kind != StmtKind::Return && !t.isShared;
  });
  walkExprs(s, [&](const ExprRef &e) { plain &= e->pure && !e->type.isVolatile; });
  for (const Access &access : model.accesses())
    plain &= !within.count(access.stmt) || access.space == Space::Local || !access.write;
  return plain && !model.unknownEffectLine();
}

void optiml::sinkUnderLastGuard(Kernel &kernel) {
  std::vector<StmtRef> &list = kernel.body->body;
  if (list.size() < 2 || list.back()->kind != StmtKind::If || list.back()->body.size() != 1)
    return;
  StmtRef guard = list.back();
  KernelModel model(kernel);
  if (!model.stable(guard->expr))
    return;
  std::set<std::string> needed = namesIn(guard->expr); // by the guard, and what its variables are made from
  std::vector<StmtRef> stays, sinks;
  for (size_t i = list.size() - 1; i-- > 0;) {
    StmtRef s = list[i];
    if (!hasNoEffects(kernel, *s))
      return;
    bool keep = s->kind == StmtKind::Decl && needed.count(s->text);
    if (keep && (!s->expr || !model.stable(s->expr)))
      return;
    if (keep)
      needed.merge(namesIn(s->expr));
    (keep ? stays : sinks).push_back(s);
  }
  // Index arithmetic stays where a reader looks for it.
  for (size_t i = sinks.size(); i-- > 0;)
    if (sinks[i]->kind == StmtKind::Decl && sinks[i]->expr && sinks[i]->type.isInt() && model.stable(sinks[i]->expr) &&
        model.singleAssignment(sinks[i]->text)) {
      bool before = true; // what it is made from stays too
      for (const StmtRef &other : sinks)
        before &= other == sinks[i] || other->kind != StmtKind::Decl || !mentions(sinks[i]->expr, other->text);
      if (before) {
        stays.push_back(sinks[i]);
        sinks.erase(sinks.begin() + long(i));
      }
    }
  auto inOrder = [&](std::vector<StmtRef> &some) {
    llvm::sort(some, [&](const StmtRef &a, const StmtRef &b) { return llvm::find(list, a) < llvm::find(list, b); });
  };
  inOrder(stays);
  inOrder(sinks);
  guard->body[0]->body.insert(guard->body[0]->body.begin(), sinks.begin(), sinks.end());
  stays.push_back(guard);
  list = stays;
}
