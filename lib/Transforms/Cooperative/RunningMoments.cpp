//===- RunningMoments.cpp - Welford's mean and variance -------------------===//
//
// Recognized by what one iteration makes of the variables (IterationCases.h):
//   n' = n + 1,  mean' = mean + (x - mean) / n',  m2' = m2 + (x - mean) * (x - mean')
//
//===----------------------------------------------------------------------===//
#include "JointUpdates.h"
#include "optiml/Analysis/IterationCases.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

static bool updatesMoments(const IterationCases &all, const std::string &n, const std::string &mean,
                           const std::string &squares, const ExprRef &number) {
  bool any = false;
  for (const IterationCase &c : all.cases) {
    if (c.order || !c.flags.empty() || !c.places.empty() || !c.isLeast.empty())
      return false;
    if (!c.changes(n) && !c.changes(mean) && !c.changes(squares))
      continue;
    any = true;
    FieldNumber count = all.before(n, c) + FieldNumber::of(1), old = all.before(mean, c), x = all.numberOf(number, c);
    auto inverse = count.inverse();
    if (!inverse)
      return false;
    FieldNumber moved = old + (x - old) * *inverse;
    if (!(c.values.at(n).number == count) || !(c.values.at(mean).number == moved) ||
        !(c.values.at(squares).number == all.before(squares, c) + (x - old) * (x - moved)))
      return false;
  }
  return any;
}

std::optional<RunningMoments> optiml::findRunningMoments(Stmt &loop, const std::map<std::string, Type> &assigned) {
  auto isNumber = [](const Type &t) { return t.isFloat() || t.cls == Type::Class::Int; };
  for (const auto &[n, nType] : assigned) {
    if (!isNumber(nType) || (nType.bytes != 4 && nType.bytes != 8))
      continue;
    for (const auto &[m, mType] : assigned)
      for (const auto &[q, qType] : assigned) {
        if (n == m || n == q || m == q || !mType.isFloat() || !qType.sameNumber(mType))
          continue;
        auto all = casesOf(loop, {n, m, q}, 1);
        if (!all)
          continue;
        for (const ExprRef &x : all->outsiders)
          if (updatesMoments(*all, n, m, q, x))
            return RunningMoments{n, m, q, nType, mType};
      }
  }
  return std::nullopt;
}

StmtRef optiml::combineMoments(const RunningMoments &own, const ExprRef &count, const ExprRef &mean,
                               const ExprRef &squares, std::set<std::string> &taken) {
  Type constant = own.type.withConst(true);
  ExprRef n = var(own.count, own.countType), m = var(own.mean, own.type), q = var(own.squares, own.type);
  ExprRef distance = var(freshName(taken, own.mean + "_distance"), own.type),
          share = var(freshName(taken, own.count + "_share"), own.type);
  auto product = [&](const ExprRef &a, const ExprRef &b) { return binary("*", a, b, own.type); };
  auto number = [&](const ExprRef &e) { return own.countType.isFloat() ? e : castTo(own.type, e); };
  std::vector<StmtRef> body = {
      declStmt(distance->text, constant, binary("-", mean, m, own.type)),
      declStmt(share->text, constant,
               binary("/", number(count), number(binary("+", n, count, own.countType)), own.type)),
      exprStmt(assign("+=", q,
                      binary("+", squares, product(product(product(distance, distance), number(n)), share), own.type))),
      exprStmt(assign("+=", m, product(distance, share))),
      exprStmt(assign("+=", n, count)),
  };
  ExprRef any = binary("!=", count, intLit(0)); // or there is nothing to divide by
  return ifStmt(any, block(body));
}
