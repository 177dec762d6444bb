//===- JoinParts.cpp - the bodies of several kernels, as one --------------===//
#include "JoinParts.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

bool PartJoiner::sameGuard(const ExprRef &a, const ExprRef &b) {
  KernelModel model(*fused);
  if (!model.stable(a) || !model.stable(b))
    return false;
  if (equal(a, b))
    return true;
  auto factsOf = [&](const ExprRef &e) {
    std::vector<Poly> facts;
    model.addFacts(e, true, facts);
    return facts;
  };
  // As many facts as comparisons: nothing of the condition is lost in them.
  auto isConjunction = [](const ExprRef &e, size_t facts) {
    static const std::set<std::string> ordered = {"<", "<=", ">", ">="};
    std::vector<ExprRef> parts = operandsOf(e, "&&");
    return parts.size() == facts && llvm::all_of(parts, [](const ExprRef &part) {
             return part->kind == ExprKind::Binary && ordered.count(part->text);
           });
  };
  std::vector<Poly> x = factsOf(a), y = factsOf(b);
  if (x.size() != y.size() || !isConjunction(a, x.size()) || !isConjunction(b, y.size()))
    return false;
  std::vector<Condition> needed;
  for (size_t i = 0; i < x.size(); ++i) {
    Poly difference = x[i] - y[i];
    if (difference.terms.empty())
      continue;
    auto text = planText(model, difference);
    if (!text || difference.constant() || !mayAsk(difference))
      return false;
    needed.push_back({IntExpr::of(*text + " == 0"), "they do as many elements each"});
  }
  conditions.insert(conditions.end(), needed.begin(), needed.end());
  return true;
}

bool PartJoiner::sameLoop(const Stmt &a, const Stmt &b) {
  auto isStride = [&](const Stmt &s) { return s.kind == StmtKind::For && s.init && strides.count(s.init->text) != 0; };
  if (!isStride(a) || !isStride(b) || a.init->type.text != b.init->type.text)
    return false;
  // An iteration of the first would end that of the second.
  if (leavesIteration(*a.body[0]) || leavesIteration(*b.body[0], {StmtKind::Break}))
    return false;
  return sameGuard(a.expr, substitute(b.expr, {{b.init->text, var(a.init->text, a.init->type)}}));
}

ExprRef PartJoiner::restBehind(const ExprRef &guard, const ExprRef &condition) {
  if (!isBinary(condition, "&&"))
    return nullptr;
  if (sameGuard(guard, condition->args[0]))
    return condition->args[1];
  const ExprRef rest = restBehind(guard, condition->args[0]);
  return rest ? logicalAnd(rest, condition->args[1]) : nullptr;
}

static bool isLoneIf(const Stmt &s) { return s.kind == StmtKind::If && s.body.size() == 1; }

bool PartJoiner::holdsOwn(const Stmt &last) {
  return anyStmt(last, [&](const Stmt &t) {
    auto part = partOf.find(&t);
    return part != partOf.end() && part->second == current;
  });
}

bool PartJoiner::belongsTo(const Stmt &last, const Stmt &s) {
  if (isLoneIf(last) && isLoneIf(s))
    return sameGuard(last.expr, s.expr) || restBehind(last.expr, s.expr);
  return sameLoop(last, s) && !holdsOwn(last);
}

bool PartJoiner::joinWith(Stmt &last, Stmt &s) {
  if (!belongsTo(last, s))
    return false;
  if (isLoop(s)) {
    substitute(*s.body[0], {{s.init->text, var(last.init->text, s.init->type)}});
    append(*last.body[0], s.body[0]->body);
    return true;
  }
  const ExprRef rest = restBehind(last.expr, s.expr);
  if (!rest) {
    append(*last.body[0], s.body[0]->body);
    return true;
  }
  StmtRef inner = ifStmt(rest, s.body[0]);
  partOf[inner.get()] = current;
  alive.push_back(inner);
  append(*last.body[0], {inner});
  return true;
}

bool PartJoiner::movesUp(const Stmt &into, const std::vector<StmtRef> &list, size_t at) {
  if (into.body.empty())
    return false;
  const StmtRef &last = into.body.back();
  size_t next = at;
  for (; next < list.size() && list[next]->kind == StmtKind::Decl; ++next) {
    const bool depends = list[next]->expr && anyNode(list[next]->expr, [](const ExprRef &e) {
                           static const std::set<ExprKind> alone = {ExprKind::IntLit, ExprKind::FloatLit,
                                                                    ExprKind::Unary, ExprKind::Cast};
                           return !alone.count(e->kind) && !(e->kind == ExprKind::Call && e->pure);
                         });
    if (depends)
      return false;
  }
  return next < list.size() && belongsTo(*last, *list[next]);
}

void PartJoiner::append(Stmt &into, std::vector<StmtRef> list) {
  auto isPlain = [&](const StmtRef &s) { return plain.count(s.get()) != 0; };
  for (size_t i = 0; i < list.size(); ++i) {
    const StmtRef &s = list[i];
    if (isPlain(s)) {
      auto end = std::find_if_not(into.body.begin(), into.body.end(), isPlain);
      KernelModel model(*fused);
      auto same = std::find_if(into.body.begin(), end, [&](const StmtRef &d) {
        bool alike = equal(d->expr, s->expr) || (s->type.isInt() && model.poly(d->expr) == model.poly(s->expr));
        return d->type.text == s->type.text && alike;
      });
      if (same == end) {
        into.body.insert(end, s);
        continue;
      }
      const std::map<std::string, ExprRef> named = {{s->text, var((*same)->text, s->type)}};
      for (size_t j = i + 1; j < list.size(); ++j)
        substitute(*list[j], named);
      for (auto &[counter, real] : strides) { // what is hidden has these names, too
        real.first = substitute(real.first, named);
        real.step = substitute(real.step, named);
      }
      continue;
    }
    if (s->kind == StmtKind::Decl && movesUp(into, list, i)) {
      into.body.insert(into.body.end() - 1, s);
      continue;
    }
    if (!into.body.empty() && joinWith(*into.body.back(), *s))
      continue;
    into.body.push_back(s);
  }
}

void PartJoiner::add(Kernel &part, unsigned index) {
  current = index;
  hideStrides(part, strides);
  KernelModel model(part);
  walk(*part.body, [&](Stmt &s) {
    partOf[&s] = index;
    if (s.kind != StmtKind::Decl || !s.dims.empty() || !s.expr || s.type.isPointer() ||
        model.singleAssignment(s.text) != &s || !model.stable(s.expr) || model.loopOf(s.text))
      return;
    bool known = true; // through declarations of the same kind
    for (const std::string &name : namesIn(s.expr))
      if (const Stmt *d = model.declaration(name))
        known &= plain.count(d) != 0;
    if (known)
      plain.insert(&s);
  });
  append(*fused->body, part.body->body);
  alive.push_back(part.body);
}
