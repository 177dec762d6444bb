//===- ValueBounds.cpp - between what an index lies -----------------------===//
#include "optiml/Analysis/ValueBounds.h"
#include "optiml/Analysis/Bounds.h"
#include <functional>

using namespace optiml;

namespace {
/// A value that a local gets, under these loops.
struct Assigned {
  ExprRef value;
  std::vector<Stmt *> loops;
};
} // namespace

/// All values that the local gets; nothing where it changes in another way, or begins without one.
static std::optional<std::vector<Assigned>> valuesOf(const Kernel &kernel, const std::string &local) {
  std::vector<Assigned> values;
  bool known = true;
  std::vector<Stmt *> loops;
  std::function<void(Stmt &)> visit = [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && s.text == local) {
      known &= s.expr && s.dims.empty();
      if (s.expr)
        values.push_back({s.expr, loops});
    }
    known &= s.kind != StmtKind::Opaque || !s.names.count(local);
    const bool assigns = s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && isVar(s.expr->args[0], local);
    if (assigns) {
      known &= s.expr->text == "=";
      values.push_back({s.expr->args[1], loops});
    }
    ownExprs(s, [&](ExprRef &e) {
      if (e)
        walk(e, [&](const ExprRef &n) {
          const bool changes = mayChange(n) && isVar(n->args[0], local) && !(assigns && n == s.expr);
          known &= !changes && !n->names.count(local);
        });
    });
    if (s.init)
      visit(*s.init);
    if (s.kind == StmtKind::For)
      loops.push_back(&s);
    for (const StmtRef &child : s.body)
      visit(*child);
    if (s.kind == StmtKind::For)
      loops.pop_back();
  };
  visit(*kernel.body);
  return known && !values.empty() ? std::optional(values) : std::nullopt;
}

/// Adds the bounds of `p` under the facts; false: there are none.
static bool addBounds(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts, ValueBounds &into) {
  auto least = lowerBound(model, p, facts), greatest = upperBound(model, p, facts);
  if (!least || !greatest)
    return false;
  into.least.push_back(*least);
  into.greatest.push_back(*greatest);
  return true;
}

static bool boundsMention(const KernelModel &model, const std::vector<Stmt *> &loops, const std::string &name) {
  return llvm::any_of(loops, [&](Stmt *loop) {
    const auto counted = asCountedLoop(*loop);
    return counted &&
           (model.dependsOn(model.poly(counted->lower), {name}) || model.dependsOn(model.poly(counted->upper), {name}));
  });
}

std::optional<ValueBounds> optiml::valueBounds(const KernelModel &model, const Access &access, const ExprRef &e) {
  const Poly p = model.poly(e);
  std::vector<Poly> facts = model.facts(access);
  ValueBounds result;
  std::optional<std::string> local;
  for (const std::string &atom : p.atoms()) {
    const Stmt *d = model.declaration(atom);
    if (!d || model.stable(Poly::atom(atom)))
      continue;
    if (local || d->isShared || !d->type.isInt() || d->type.bytes < 4)
      return std::nullopt;
    local = atom;
  }
  if (!local)
    return addBounds(model, p, facts, result) ? std::optional(result) : std::nullopt;
  // What holds of other locals now need not have held when the value was assigned.
  auto isOfThisMoment = [&](const std::string &atom) {
    const bool counts = llvm::any_of(access.path, [&](const Stmt *loop) {
      return loop->kind == StmtKind::For && loop->init && loop->init->text == atom;
    });
    return !counts && (atom.starts_with("{") || model.declaration(atom));
  };
  std::erase_if(facts, [&](const Poly &fact) { return llvm::any_of(fact.atoms(), isOfThisMoment); });
  const auto values = valuesOf(model.kernel(), *local);
  if (!values)
    return std::nullopt;
  for (const Assigned &assigned : *values) {
    const Poly value = model.poly(assigned.value);
    if (!model.stable(value))
      return std::nullopt;
    // A loop around both has moved on since; and a counter with the same name is another one.
    auto countsElsewhere = [&](const Stmt *loop) {
      return loop->kind == StmtKind::For && loop->init &&
             (value.mentions(loop->init->text) || boundsMention(model, assigned.loops, loop->init->text));
    };
    if (llvm::any_of(access.path, countsElsewhere))
      return std::nullopt;
    std::vector<Poly> known = facts;
    model.addLoopFacts(assigned.loops, known);
    if (!addBounds(model, p.substitute(*local, value), known, result))
      return std::nullopt;
  }
  return result;
}

bool optiml::requireBelow(KernelState &state, const KernelModel &model, const Access &access, const ExprRef &e,
                          int64_t end, const std::string &why) {
  const auto bounds = valueBounds(model, access, e);
  if (!bounds)
    return false;
  std::vector<std::string> conditions;
  // Always so, or to be tested; not where the launch that is known is none of those.
  auto holds = [&](const Poly &room, const Poly &p, const std::string &comparison) {
    if (auto constant = room.constant())
      return *constant >= 0;
    const auto text = planText(model, p);
    if (!text || state.hints.evaluate(IntExpr::of(*text + comparison)) == 0)
      return false;
    conditions.push_back(*text + comparison);
    return true;
  };
  for (const Poly &least : bounds->least)
    if (!holds(least, least, " >= 0"))
      return false;
  for (const Poly &greatest : bounds->greatest)
    if (!holds(Poly(end - 1) - greatest, greatest, " < " + std::to_string(end)))
      return false;
  for (const std::string &condition : conditions)
    state.require(condition, why);
  return true;
}
