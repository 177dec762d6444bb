//===- CarriedValues.cpp - what an iteration hands to the next ------------===//
#include "CarriedValues.h"
#include "OwnState.h"
#include "Reduction.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

static constexpr int64_t mostCarried = 16;

/// How many elements it has, if they can be variables.
static std::optional<int64_t> elementsOf(Kernel &kernel, const Stmt &d) {
  if (d.kind != StmtKind::Decl || d.isShared || d.dims.size() != 1 || !(d.type.isInt() || d.type.isFloat()) ||
      d.type.isVolatile || (d.expr && d.expr->kind != ExprKind::InitList))
    return std::nullopt;
  auto extent = constantValue(d.dims[0]);
  if (!extent || *extent > mostCarried || opaqueMentions(*kernel.body, {d.text}))
    return std::nullopt;
  unsigned elements = 0, declared = 0;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    auto index = e->kind == ExprKind::Subscript && isVar(e->args[0], d.text) ? constantValue(e->args[1]) : std::nullopt;
    elements += index && *index >= 0 && *index < *extent;
  });
  walk(*kernel.body, [&](Stmt &s) { declared += s.kind == StmtKind::Decl && s.text == d.text; });
  return declared == 1 && elements == countMentions(*kernel.body)[d.text] ? extent : std::nullopt;
}

void optiml::splitLocalArrays(Kernel &kernel) {
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;) {
      StmtRef d = list[i];
      auto extent = elementsOf(kernel, *d);
      if (!extent)
        continue;
      std::vector<StmtRef> made;
      std::vector<ExprRef> elements;
      for (int64_t k = 0; k < *extent; ++k) {
        ExprRef value = !d->expr ? nullptr : size_t(k) < d->expr->args.size() ? d->expr->args[size_t(k)] : intLit(0);
        elements.push_back(var(freshName(taken, d->text + "_" + std::to_string(k)), d->type));
        made.push_back(atLine(d->line, declStmt(elements.back()->text, d->type, value)));
      }
      rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
        bool isElement = e->kind == ExprKind::Subscript && isVar(e->args[0], d->text);
        return isElement ? elements[size_t(*constantValue(e->args[1]))] : nullptr;
      });
      list.erase(list.begin() + long(i));
      list.insert(list.begin() + long(i), made.begin(), made.end());
    }
  });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// What the variable is before statement `at`: its declaration's value, which nothing in between changes.
static ExprRef valueBefore(const std::vector<StmtRef> &list, size_t at, const std::string &name, size_t &where) {
  for (where = at; where-- > 0;) {
    const Stmt &s = *list[where];
    if (s.kind == StmtKind::Decl && s.text == name)
      return s.expr && onlyComputes(s.expr) ? s.expr : nullptr;
    if (countChanges(s).count(name) && countChanges(s).at(name))
      return nullptr;
  }
  return nullptr;
}

static bool changeBetween(const std::vector<StmtRef> &list, size_t from, size_t to, const ExprRef &value) {
  bool loads = anyNode(value, isLoad);
  for (size_t i = from; i < to; ++i) {
    for (const auto &[name, changes] : countChanges(*list[i]))
      if (changes && mentions(value, name))
        return true;
    if (holdsKind(*list[i], {StmtKind::Opaque, StmtKind::Barrier}) || anyExpr(*list[i], [&](const ExprRef &e) {
          return !e->pure || (loads && mayChange(e) && e->args[0]->kind != ExprKind::Var);
        }))
      return true;
  }
  return false;
}

/// Removes the copy at the end of the loop's body, if it is one of those.
static bool keepOne(Kernel &kernel, std::vector<StmtRef> &list, size_t at, size_t copy) {
  Stmt &loop = *list[at];
  std::vector<StmtRef> &body = loop.body[0]->body;
  const ExprRef older = body[copy]->expr->args[0], newer = body[copy]->expr->args[1];
  if (older->kind != ExprKind::Var || newer->kind != ExprKind::Var || older->text == newer->text ||
      !older->type.sameNumber(newer->type) || older->type.isVolatile || newer->type.isVolatile)
    return false;
  for (size_t i = copy + 1; i < body.size(); ++i)
    if (countChanges(*body[i])[newer->text])
      return false;
  size_t olderAt = 0, newerAt = 0;
  ExprRef a = valueBefore(list, at, older->text, olderAt), b = valueBefore(list, at, newer->text, newerAt);
  if (!a || !b || !equal(a, b) || countChanges(loop)[older->text] != 1 ||
      changeBetween(list, std::min(olderAt, newerAt), at, a) ||
      countMentions(*kernel.body)[older->text] != countMentions(loop)[older->text])
    return false;
  body.erase(body.begin() + long(copy));
  body.insert(body.begin(), declStmt(older->text, older->type.unqualified().withConst(true), newer));
  list.erase(list.begin() + long(olderAt));
  return true;
}

void optiml::keepOneOfCopies(Kernel &kernel) {
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;) {
      if (list[i]->kind != StmtKind::For || list[i]->body[0]->kind != StmtKind::Block ||
          leavesIteration(*list[i]->body[0]) || holdsKind(*list[i], {StmtKind::Opaque, StmtKind::Return}))
        continue;
      const StmtRef loop = list[i];
      for (size_t k = loop->body[0]->body.size(); k-- > 0 && isAssignStmt(*loop->body[0]->body[k]);)
        if (keepOne(kernel, list, i, k)) {
          --i; // the declaration before it is gone
          ++k; // another one stands in the body
        }
    }
  });
}

//===----------------------------------------------------------------------===//
// Values of the iteration before
//===----------------------------------------------------------------------===//

/// What the loop's last assignments make of the counter alone.
static ExprRef ofCounter(const Stmt &loop, const CountedLoop &counted, ExprRef e) {
  std::set<std::string> inside = namesDeclaredIn(*loop.body[0]);
  for (unsigned deep = 0; deep < 8; ++deep) {
    std::map<std::string, ExprRef> known;
    for (const StmtRef &s : loop.body[0]->body)
      if (s->kind == StmtKind::Decl && s->expr && s->dims.empty() && mentions(e, s->text) &&
          !countChanges(loop)[s->text])
        known.emplace(s->text, asNumber(s->type.unqualified(), s->expr));
    if (known.empty())
      break;
    e = substitute(e, known);
  }
  std::map<std::string, unsigned> changes = countChanges(loop);
  for (const std::string &name : namesIn(e))
    if (inside.count(name) || (name != counted.var && changes[name]))
      return nullptr;
  return onlyComputes(e) ? e : nullptr;
}

static void recompute(Kernel &kernel, StmtRef &loop, std::set<std::string> &taken) {
  auto counted = asCountedLoop(*loop);
  if (!counted || loop->body[0]->kind != StmtKind::Block || leavesIteration(*loop->body[0]) ||
      holdsKind(*loop, {StmtKind::Opaque, StmtKind::Barrier, StmtKind::Return}) || !onlyComputes(counted->lower) ||
      anyExpr(*loop, [](const ExprRef &e) { return !e->pure || (mayChange(e) && e->args[0]->kind != ExprKind::Var); }))
    return;
  if (assignedOutside(*loop).empty() || onlyReduces(*loop))
    return;
  StmtRef made = clone(loop);
  std::vector<StmtRef> &body = made->body[0]->body;
  for (size_t k = body.size(); k-- > 0;) {
    if (!isAssignStmt(*body[k]) || body[k]->expr->args[0]->kind != ExprKind::Var)
      continue;
    ExprRef previous = body[k]->expr->args[0];
    unsigned after = 0;
    for (size_t i = k + 1; i < body.size(); ++i)
      after += countMentions(*body[i])[previous->text];
    ExprRef value = ofCounter(*made, *counted, body[k]->expr->args[1]);
    if (!value || after || countChanges(*made)[previous->text] != 1 || !previous->type.sameNumber(value->type) ||
        namesDeclaredIn(*made).count(previous->text))
      continue;
    unsigned elsewhere = 0; // it is not what the loop is for
    walk(*kernel.body, [&](Stmt &s) {
      ownExprs(s, [&](ExprRef &e) {
        if (e && !holdsStmt(*loop, &s) && mentions(e, previous->text))
          ++elsewhere;
      });
    });
    if (elsewhere)
      continue;
    ExprRef counter = var(counted->var, counted->type.unqualified());
    ExprRef one = substitute(value, {{counted->var, sub(counter, intLit(counted->step))}});
    ExprRef isFirst = binary("==", counter, counted->lower, Type::makeBool());
    ExprRef own = var(freshName(taken, previous->text + "_of_iteration"), previous->type.unqualified());
    body.erase(body.begin() + long(k));
    substitute(*made->body[0], {{previous->text, own}});
    body.insert(body.begin(), declStmt(own->text, own->type.withConst(true), conditional(isFirst, previous, one)));
  }
  if (onlyReduces(*made))
    loop = made;
}

void optiml::recomputePrevious(Kernel &kernel) {
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (StmtRef &s : list)
      if (s->kind == StmtKind::For)
        recompute(kernel, s, taken);
  });
}
