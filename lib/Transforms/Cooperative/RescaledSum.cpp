//===- RescaledSum.cpp - the normalizer of an online softmax --------------===//
//
// One iteration is evaluated symbolically, once for x > m and once for x < m (where they are equal both give the same,
// as exp(0) is 1). It is such an update when it gives
//   x > m:  m' = x,  s' = s * exp(m - x) + w
//   x < m:  m' = m,  s' = s + exp(x - m) * w
// whatever the statements are: branches, fmaxf, or names for the parts.
//
//===----------------------------------------------------------------------===//
#include "JointUpdates.h"
#include "optiml/Analysis/SymbolicIteration.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml;

namespace {

bool isExponential(const ExprRef &e) {
  static const llvm::StringSet<> functions = {"exp", "expf", "__expf", "exp2", "exp2f", "std::exp", "exp10f"};
  return e->kind == ExprKind::Call && e->args.size() == 1 && e->isLibrary && e->pure && functions.contains(e->text);
}

bool isMaximum(const ExprRef &e) {
  static const llvm::StringSet<> functions = {"fmaxf", "fmax", "max", "std::max"};
  return e->kind == ExprKind::Call && e->args.size() == 2 && e->isLibrary && e->pure && functions.contains(e->text);
}

/// One iteration, for x above the extreme or below it.
class Case {
public:
  Case(const std::string &extreme, const ExprRef &x, bool above) : extreme(extreme), x(x), above(above) {}
  SymbolicIteration iteration() const {
    return {[own = *this](const ExprRef &e) { return own.simplified(e); },
            [own = *this](const ExprRef &e) { return own.decide(e); }};
  }

private:
  std::string extreme;
  ExprRef x;
  bool above;

  bool isX(const ExprRef &e) const { return equal(e, x); }
  bool isM(const ExprRef &e) const { return isVar(e, extreme); }
  std::optional<bool> decide(const ExprRef &condition) const {
    static const std::map<std::string, bool> greater = {{">", true}, {">=", true}, {"<", false}, {"<=", false}};
    auto it = condition->kind == ExprKind::Binary ? greater.find(condition->text) : greater.end();
    if (it == greater.end())
      return std::nullopt;
    if (isX(condition->args[0]) && isM(condition->args[1]))
      return it->second == above;
    if (isM(condition->args[0]) && isX(condition->args[1]))
      return it->second != above;
    return std::nullopt;
  }
  ExprRef simplified(const ExprRef &e) const {
    if (isMaximum(e) && ((isX(e->args[0]) && isM(e->args[1])) || (isM(e->args[0]) && isX(e->args[1]))))
      return isX(e->args[0]) == above ? e->args[0] : e->args[1];
    if (e->kind == ExprKind::Cond)
      if (auto taken = decide(e->args[0]))
        return e->args[*taken ? 1 : 2];
    if (isBinary(e, "-") && equal(e->args[0], e->args[1]) && e->type.isFloat())
      return intLit(0);
    if (isExponential(e) && numberOf(e->args[0]) == 0.0)
      return intLit(1);
    if (isBinary(e, "*") && e->type.isFloat()) {
      if (numberOf(e->args[0]) == 1.0)
        return e->args[1];
      if (numberOf(e->args[1]) == 1.0)
        return e->args[0];
    }
    return e;
  }
};

/// e is exp(a - b).
bool isDistance(const ExprRef &e, const ExprRef &a, const ExprRef &b, const std::string &function) {
  return isExponential(e) && e->text == function && isBinary(e->args[0], "-") && equal(e->args[0]->args[0], a) &&
         equal(e->args[0]->args[1], b);
}

/// What the two cases give is the update above.
bool isUpdate(const ExprRef &m, const ExprRef &s, const ExprRef &x, const SymbolicIteration &above,
              const SymbolicIteration &below, const std::string &function) {
  if (!equal(above.value(m->text, m->type), x) || !equal(below.value(m->text, m->type), m))
    return false;
  ExprRef grown = above.value(s->text, s->type), same = below.value(s->text, s->type);
  ExprRef weight, rest;
  bool scales = eitherWay(grown, "+", [&](const ExprRef &scaled, const ExprRef &added) {
    weight = added;
    return eitherWay(scaled, "*", [&](const ExprRef &sum, const ExprRef &factor) {
      return equal(sum, s) && isDistance(factor, m, x, function);
    });
  });
  bool adds = eitherWay(same, "+", [&](const ExprRef &sum, const ExprRef &added) {
    rest = added;
    return equal(sum, s);
  });
  if (!scales || !adds || mentions(weight, s->text) || mentions(weight, m->text))
    return false;
  if (numberOf(weight) == 1.0)
    return isDistance(rest, x, m, function);
  return eitherWay(
      rest, "*", [&](const ExprRef &e, const ExprRef &w) { return isDistance(e, x, m, function) && equal(w, weight); });
}

} // namespace

static std::optional<RescaledSum> rescaledSum(Stmt &loop, const std::string &extreme, const std::string &sum,
                                              const Type &type) {
  // Whatever follows from the pair belongs to it: names for parts of the update.
  std::set<std::string> names = {extreme, sum};
  auto statements = updateStatements(loop, names);
  if (!statements)
    return std::nullopt;
  ExprRef x; // what is compared with m
  std::set<std::string> functions;
  for (Stmt *s : *statements)
    walkExprs(*s, [&](const ExprRef &e) {
      bool compares = isMaximum(e) || (e->kind == ExprKind::Binary && (e->text[0] == '<' || e->text[0] == '>') &&
                                       e->text != "<<" && e->text != ">>");
      if (compares && !x && (isVar(e->args[0], extreme) || isVar(e->args[1], extreme)))
        x = e->args[isVar(e->args[0], extreme) ? 1 : 0];
      if (isExponential(e))
        functions.insert(e->text);
    });
  if (!x || functions.size() != 1 || llvm::any_of(names, [&](const std::string &name) { return mentions(x, name); }))
    return std::nullopt;
  SymbolicIteration above = Case(extreme, x, true).iteration(), below = Case(extreme, x, false).iteration();
  if (!above.run(*statements) || !below.run(*statements) ||
      !isUpdate(var(extreme, type), var(sum, type), x, above, below, *functions.begin()))
    return std::nullopt;
  return RescaledSum{extreme, sum, type, *functions.begin(), *statements};
}

std::optional<RescaledSum> optiml::findRescaledSum(Stmt &loop) {
  if (loop.body.empty() || loop.body[0]->kind != StmtKind::Block)
    return std::nullopt;
  std::map<std::string, Type> assigned = assignedNumbers(loop);
  for (const auto &[m, mType] : assigned)
    for (const auto &[s, sType] : assigned)
      if (m != s && mType.bytes == sType.bytes)
        if (auto found = rescaledSum(loop, m, s, mType))
          return found;
  return std::nullopt;
}

static ExprRef leastNumber(const Type &type) {
  return unary("-", floatLit(type.bytes == 4 ? "3.40282347e+38f" : "1.7976931348623157e+308", type), type);
}

StmtRef optiml::startAtNumber(const RescaledSum &pair) {
  ExprRef m = var(pair.extreme, pair.type), least = leastNumber(pair.type);
  return ifStmt(lessThan(m, least), block({exprStmt(assign("=", m, least))}));
}

StmtRef optiml::restoreStart(const RescaledSum &pair, const ExprRef &start) {
  ExprRef m = var(pair.extreme, pair.type), s = var(pair.sum, pair.type);
  ExprRef nothing = logicalAnd(binary("==", m, leastNumber(pair.type), Type::makeBool()),
                               binary("==", s, intLit(0), Type::makeBool()));
  return ifStmt(nothing, block({exprStmt(assign("=", m, start))}));
}

StmtRef optiml::combineRescaled(const RescaledSum &pair, const ExprRef &otherExtreme, const ExprRef &otherSum) {
  ExprRef m = var(pair.extreme, pair.type), s = var(pair.sum, pair.type);
  auto scaled = [&](const ExprRef &value, const ExprRef &from, const ExprRef &to) {
    ExprRef e = callOf(pair.function, {binary("-", from, to, pair.type)}, pair.type, true);
    return binary("*", value, e, pair.type);
  };
  StmtRef grows = block({exprStmt(assign("=", s, binary("+", scaled(s, m, otherExtreme), otherSum, pair.type))),
                         exprStmt(assign("=", m, otherExtreme))});
  // Equal ones may both be infinite: a thread that has seen nothing.
  ExprRef same = binary("==", otherExtreme, m);
  StmtRef stays = block({exprStmt(assign("+=", s, conditional(same, otherSum, scaled(otherSum, otherExtreme, m))))});
  return ifStmt(binary(">", otherExtreme, m), grows, stays);
}
