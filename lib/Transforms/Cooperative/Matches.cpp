//===- Matches.cpp - what a loop finds, with its place --------------------===//
#include "Matches.h"
#include "JointUpdates.h"
#include "OwnState.h"
#include "Reduction.h"
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KnownConditions.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

//===----------------------------------------------------------------------===//
// What a match is
//===----------------------------------------------------------------------===//

namespace {
class MatchRow {
public:
  MatchRow(const IterationCases &all, const std::set<std::string> &group) : all(all), group(group) {}
  std::optional<Match> match();

private:
  bool keepsAll(const IterationCase &c) const {
    return llvm::none_of(group, [&](const std::string &v) { return c.changes(v); });
  }
  bool takesAll(const IterationCase &c);
  void findFlag();

  const IterationCases &all;
  const std::set<std::string> &group;
  Match found;
};
} // namespace

static bool isOne(const IterationValue &value) { return value.number == FieldNumber::of(1); }

/// What iterations look at before they take, or what they set to 1 in any case.
void MatchRow::findFlag() {
  for (const IterationCase &c : all.cases)
    if (!c.flags.empty()) {
      found.flag = c.flags.begin()->first;
      found.isFirst = true;
      return;
    }
  for (const std::string &v : group)
    if (llvm::all_of(all.cases, [&](const IterationCase &c) { return keepsAll(c) || isOne(c.values.at(v)); }))
      found.flag = v;
}

bool MatchRow::takesAll(const IterationCase &c) {
  for (const std::string &v : group) {
    const IterationValue &value = c.values.at(v);
    if (v == found.flag ? !isOne(value) : !value.outside)
      return false;
    if (v == found.flag)
      continue;
    auto [it, added] = found.values.emplace(v, value.outside);
    if (!added && !equal(it->second, value.outside))
      return false;
  }
  return true;
}

std::optional<Match> MatchRow::match() {
  findFlag();
  bool takes = false;
  for (const IterationCase &c : all.cases) {
    if (c.order || !c.isLeast.empty() || !c.places.empty() || c.flags.size() > 1 ||
        (!c.flags.empty() && !c.flags.count(found.flag)))
      return std::nullopt;
    if (keepsAll(c))
      continue;
    if ((found.isFirst && (c.flags.empty() || c.flags.at(found.flag))) || !takesAll(c))
      return std::nullopt;
    takes = true;
  }
  return takes ? std::optional(found) : std::nullopt;
}

std::optional<Match> optiml::findMatch(Stmt &loop, const std::map<std::string, Type> &assigned) {
  for (const std::set<std::string> &group : jointVariables(loop, assigned))
    if (auto all = casesOf(loop, group, 1))
      if (auto found = MatchRow(*all, group).match())
        return found;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Making it plain
//===----------------------------------------------------------------------===//

/// "v = c ? a : v" as "if (c) v = a"; null where nothing is assigned. Under "v == s", s is v.
static StmtRef conditionally(const ExprRef &v, const ExprRef &e, const ExprRef &same) {
  if (equal(e, v) || (same && equal(e, same)))
    return nullptr;
  if (e->kind != ExprKind::Cond)
    return block({exprStmt(assign("=", v, e))});
  const ExprRef &c = e->args[0];
  auto sameWhere = [&](const char *op) {
    return isBinary(c, op) && equal(c->args[0], v) && constantValue(c->args[1]) ? c->args[1] : same;
  };
  StmtRef then = conditionally(v, e->args[1], sameWhere("==")),
          otherwise = conditionally(v, e->args[2], sameWhere("!="));
  if (!then)
    return otherwise ? block({ifStmt(logicalNot(c), otherwise)}) : nullptr;
  return block({ifStmt(c, then, otherwise)});
}

static bool isKept(const ExprRef &v, const ExprRef &e) {
  return equal(e, v) || (e->kind == ExprKind::Cond && (isKept(v, e->args[1]) || isKept(v, e->args[2])));
}

static void takeApart(Stmt &loop, const std::map<std::string, Type> &assigned) {
  forEachList(*loop.body[0], [&](std::vector<StmtRef> &list) {
    for (StmtRef &s : list)
      if (isAssignStmt(*s) && s->expr->args[0]->kind == ExprKind::Var && assigned.count(s->expr->args[0]->text) &&
          isKept(s->expr->args[0], s->expr->args[1]) && s->expr->args[1]->kind == ExprKind::Cond)
        if (StmtRef made = conditionally(s->expr->args[0], s->expr->args[1], nullptr))
          s = made->body.size() == 1 ? made->body[0] : made;
  });
}

/// After each assignment to one of the variables, or once in each list that has some, come these statements.
static void insertAfter(Stmt &loop, const std::set<std::string> &variables, const std::vector<StmtRef> &statements) {
  forEachList(*loop.body[0], [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;)
      if (isAssignStmt(*list[i]) && list[i]->expr->args[0]->kind == ExprKind::Var &&
          variables.count(list[i]->expr->args[0]->text)) {
        for (size_t k = 0; k < statements.size(); ++k)
          list.insert(list.begin() + long(i + 1 + k), clone(statements[k]));
        return;
      }
  });
}

static std::optional<int64_t> greatestOf(const Type &type) {
  if (type.bytes == 4)
    return type.isSigned ? INT32_MAX : int64_t(UINT32_MAX);
  return type.bytes == 8 && type.isSigned ? std::optional(INT64_MAX) : std::nullopt;
}

/// "at < 0" becomes "!at_set" where what is assigned to `at` is never less than 0.
static void flagOf(const std::string &v, Stmt &loop, const CountedLoop &counted, const KernelModel &model,
                   const std::vector<Poly> &facts, std::vector<StmtRef> &before, std::set<std::string> &taken) {
  ExprRef asked; // v op constant
  bool same = true;
  auto asComparison = [&](const ExprRef &e) -> ExprRef {
    if (e->kind != ExprKind::Binary || inverseComparison(e->text).empty())
      return nullptr;
    return isVar(e->args[0], v) && constantValue(e->args[1]) ? e : nullptr;
  };
  auto inverse = [](const ExprRef &e) {
    return binary(inverseComparison(e->text), e->args[0], e->args[1], Type::makeBool());
  };
  std::vector<ExprRef> becomes;
  walkExprs(loop, [&](const ExprRef &e) {
    if (ExprRef c = asComparison(e)) {
      asked = asked ? asked : c;
      same &= equal(asked, c) || equal(asked, inverse(c));
    }
    if (e->kind == ExprKind::Assign && e->text == "=" && isVar(e->args[0], v))
      becomes.push_back(e->args[1]);
  });
  unsigned statements = 0;
  walk(loop, [&](Stmt &s) { statements += isAssignStmt(s) && isVar(s.expr->args[0], v); });
  if (!asked || !same || becomes.empty() || countChanges(loop)[v] != becomes.size() || statements != becomes.size())
    return;
  std::optional<bool> after;
  for (const ExprRef &e : becomes) {
    auto holds = truth(model, substitute(asked, {{v, e}}), facts);
    // The counter is less than its bound, and so than the greatest number.
    if (isVar(e, counted.var) && constantValue(asked->args[1]) == greatestOf(counted.type) &&
        counted.type.sameNumber(asked->args[0]->type))
      holds = comparisonHolds(asked->text, -1);
    if (!holds || (after && *after != *holds))
      return;
    after = holds;
  }
  ExprRef flag = var(freshName(taken, v + "_set"), Type::makeInt());
  ExprRef isSet = *after ? asked : inverse(asked);
  before.push_back(declStmt(flag->text, flag->type, conditional(isSet, intLit(1), intLit(0))));
  rewriteExprs(*loop.body[0], [&](const ExprRef &e) -> ExprRef {
    ExprRef c = asComparison(e);
    if (!c)
      return nullptr;
    return equal(c, isSet) ? binary("!=", flag, intLit(0), Type::makeBool())
                           : binary("==", flag, intLit(0), Type::makeBool());
  });
  insertAfter(loop, {v}, {exprStmt(assign("=", flag, intLit(1)))});
}

/// What is found gets a flag, and the counter where it was found.
static void markPlace(Stmt &loop, const CountedLoop &counted, const Match &found, std::vector<StmtRef> &before,
                      std::set<std::string> &taken) {
  std::set<std::string> variables;
  for (const auto &[name, value] : found.values)
    variables.insert(name);
  Type type = counted.type.unqualified();
  ExprRef at = var(freshName(taken, "found_at"), type);
  std::vector<StmtRef> marks = {exprStmt(assign("=", at, var(counted.var, type)))};
  before.push_back(declStmt(at->text, type, intLit(0)));
  if (!found.isFirst) {
    ExprRef flag = var(freshName(taken, "found"), Type::makeInt());
    marks.push_back(exprStmt(assign("=", flag, intLit(1))));
    before.push_back(declStmt(flag->text, flag->type, intLit(0)));
  }
  insertAfter(loop, variables, marks);
}

static void markIn(std::vector<StmtRef> &list, size_t at, const KernelModel &model, std::set<std::string> &taken) {
  auto counted = asCountedLoop(*list[at]);
  if (!counted || list[at]->body[0]->kind != StmtKind::Block || holdsKind(*list[at], {StmtKind::Opaque}))
    return;
  auto assigned = assignedOutside(*list[at]);
  if (assigned.empty() || onlyReduces(*list[at]))
    return;
  StmtRef made = clone(list[at]);
  std::vector<StmtRef> before;
  takeApart(*made, assigned);
  std::vector<Poly> facts;
  model.addLoopFacts({list[at].get()}, facts);
  for (const auto &[name, type] : assigned)
    if (type.cls == Type::Class::Int && !type.isVolatile)
      flagOf(name, *made, *counted, model, facts, before, taken);
  if (!onlyReduces(*made))
    if (auto found = findMatch(*made, assignedOutside(*made)))
      markPlace(*made, *asCountedLoop(*made), *found, before, taken);
  if (!onlyReduces(*made))
    return;
  list[at] = made;
  list.insert(list.begin() + long(at), before.begin(), before.end());
}

void optiml::markMatches(Kernel &kernel) {
  KernelModel model(kernel, {0, 0, 0});
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = list.size(); i-- > 0;)
      if (list[i]->kind == StmtKind::For)
        markIn(list, i, model, taken);
  });
}
