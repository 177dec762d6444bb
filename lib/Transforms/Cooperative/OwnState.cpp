//===- OwnState.cpp - what a loop carries, in variables of its own --------===//
#include "OwnState.h"
#include "JointUpdates.h"
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

std::map<std::string, Type> optiml::assignedOutside(Stmt &loop) {
  std::set<std::string> inside = namesDeclaredIn(loop);
  std::map<std::string, Type> result;
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    if (isChange(e) && e->args[0]->kind == ExprKind::Var && !inside.count(e->args[0]->text))
      result.emplace(e->args[0]->text, e->args[0]->type);
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// The element a[… place …] that the conditions of the loop's own statements read, if it is one and the same, and
/// nothing else in the loop looks at the place.
static ExprRef elementAt(Stmt &loop, const std::string &place) {
  ExprRef element;
  unsigned explained = 0;
  bool same = true;
  for (const StmtRef &s : loop.body[0]->body) {
    if (s->kind != StmtKind::If)
      continue;
    ExprRef first = s->expr; // what is evaluated in any case
    while (isBinary(first, "&&") || isBinary(first, "||"))
      first = first->args[0];
    walk(first, [&](const ExprRef &e) {
      if (e->kind != ExprKind::Subscript || !mentions(e->args[1], place) || mentions(e->args[0], place))
        return;
      same &= !element || equal(element, e);
      element = e;
      walk(e->args[1], [&](const ExprRef &x) { explained += isVar(x, place); });
    });
  }
  walkExprs(loop, [&](const ExprRef &e) { explained += e->kind == ExprKind::Assign && isVar(e->args[0], place); });
  return element && same && explained == countMentions(loop)[place] ? element : nullptr;
}

static void carryIn(std::vector<StmtRef> &list, size_t at, std::set<std::string> &taken) {
  Stmt &loop = *list[at];
  auto counted = asCountedLoop(loop);
  if (!counted || loop.body[0]->kind != StmtKind::Block)
    return;
  bool writes = holdsKind(loop, {StmtKind::Opaque, StmtKind::Barrier});
  walkExprs(loop, [&](const ExprRef &e) { writes |= !e->pure || (mayChange(e) && e->args[0]->kind != ExprKind::Var); });
  if (writes)
    return;
  for (const auto &[place, type] : assignedOutside(loop)) {
    if (type.cls != Type::Class::Int || type.isVolatile)
      continue;
    ExprRef element = elementAt(loop, place);
    if (!element || !(element->type.isFloat() || element->type.isInt()))
      continue;
    bool plain = true; // every assignment is a statement that says what the place becomes
    walkExprs(loop, [&, name = place](const ExprRef &e) {
      plain &= !isChange(e) || !isVar(e->args[0], name) || (e->kind == ExprKind::Assign && e->text == "=");
    });
    unsigned statements = 0, assignments = countChanges(loop)[place];
    walk(loop, [&, name = place](Stmt &s) { statements += isAssignStmt(s) && isVar(s.expr->args[0], name); });
    if (!plain || statements != assignments)
      continue;
    Type valueType = element->type.unqualified();
    std::string base = rootName(element);
    ExprRef value = var(freshName(taken, (base.empty() ? "value" : base) + "_at_" + place), valueType);
    auto mapped = [&, name = place](const ExprRef &e) -> ExprRef { return equal(e, element) ? value : nullptr; };
    rewriteExprs(*loop.body[0], mapped);
    forEachList(*loop.body[0], [&, name = place](std::vector<StmtRef> &inner) {
      for (size_t i = 0; i < inner.size(); ++i) {
        if (!isAssignStmt(*inner[i]) || !isVar(inner[i]->expr->args[0], name))
          continue;
        ExprRef moved = substitute(element, {{name, inner[i]->expr->args[1]}});
        inner.insert(inner.begin() + long(i) + 1, exprStmt(assign("=", value, moved)));
        ++i;
      }
    });
    StmtRef first = ifStmt(lessThan(counted->lower, counted->upper), block({exprStmt(assign("=", value, element))}));
    list.insert(list.begin() + long(at), first);
    list.insert(list.begin() + long(at), declStmt(value->text, valueType, intLit(0)));
    return;
  }
}

void optiml::carryElements(Kernel &kernel) {
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;)
      if (list[i]->kind == StmtKind::For)
        carryIn(list, i, taken);
  });
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// With a count of its own that begins at `already`, the loop makes running moments; null where it does not.
static StmtRef withOwnCount(const StmtRef &loop, const CountedLoop &counted, const ExprRef &count, int64_t already) {
  StmtRef made = clone(loop);
  std::set<std::string> names;
  for (const auto &[name, type] : assignedOutside(*made))
    names.insert(name);
  std::function<bool(const ExprRef &)> asks = [&](const ExprRef &e) { // for the counter, not for an element
    return e->kind != ExprKind::Subscript && (isVar(e, counted.var) || llvm::any_of(e->args, asks));
  };
  for (const StmtRef &s : made->body[0]->body)
    if (s->kind == StmtKind::Decl && s->expr && asks(s->expr))
      names.insert(s->text);
  auto statements = updateStatements(*made, names);
  if (!statements)
    return nullptr;
  // Of this iteration: counter = lower + count - 1 - already.
  ExprRef counter = add(count, intLit(*constantValue(counted.lower) - 1 - already));
  std::function<ExprRef(const ExprRef &)> replaced = [&](const ExprRef &e) -> ExprRef {
    if (e->kind == ExprKind::Subscript) // where an element is, the counter still says
      return e;
    if (isVar(e, counted.var))
      return counter;
    return mapOperands(e, replaced);
  };
  for (Stmt *s : *statements)
    walk(*s, [&](Stmt &t) {
      ownExprs(t, [&](ExprRef &e) {
        if (e)
          e = replaced(e);
      });
    });
  std::vector<StmtRef> &body = made->body[0]->body;
  auto first = llvm::find_if(body, [&](const StmtRef &s) { return s.get() == statements->front(); });
  body.insert(first, exprStmt(assign("+=", count, intLit(1))));
  return findRunningMoments(*made, assignedOutside(*made)) ? made : nullptr;
}

void optiml::countOwn(Kernel &kernel) {
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;) {
      auto counted = list[i]->kind == StmtKind::For ? asCountedLoop(*list[i]) : std::nullopt;
      if (!counted || counted->step != 1 || !constantValue(counted->lower) || list[i]->body[0]->kind != StmtKind::Block)
        continue;
      std::map<std::string, Type> assigned = assignedOutside(*list[i]);
      unsigned numbers = 0;
      for (const auto &[name, type] : assigned)
        numbers += type.isFloat();
      if (numbers < 2 || findRunningMoments(*list[i], assigned))
        continue;
      ExprRef count = var(freshName(taken, "count"), Type::makeInt());
      for (int64_t already : {0, 1})
        if (StmtRef made = withOwnCount(list[i], *counted, count, already)) {
          list[i] = made;
          list.insert(list.begin() + long(i), declStmt(count->text, Type::makeInt(), intLit(already)));
          break;
        }
    }
  });
}
