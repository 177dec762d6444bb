//===- RunningMoments.cpp - Welford's mean and variance -------------------===//
//
// Recognized by what one iteration makes of the variables:
//   n' = n + 1,  mean' = mean + (x - mean) / n',  m2' = m2 + (x - mean) * (x - mean')
//
//===----------------------------------------------------------------------===//
#include "JointUpdates.h"
#include "optiml/Analysis/SymbolicIteration.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Conversions of the count do not change it.
static const ExprRef &unconverted(const ExprRef &e) { return e->kind == ExprKind::Cast ? unconverted(e->args[0]) : e; }

static bool isDifference(const ExprRef &e, const ExprRef &a, const ExprRef &b) {
  return isBinary(e, "-") && equal(e->args[0], a) && equal(e->args[1], b);
}

static std::optional<RunningMoments> moments(Stmt &loop, const std::pair<std::string, Type> &n,
                                             const std::pair<std::string, Type> &m,
                                             const std::pair<std::string, Type> &q) {
  std::set<std::string> names = {n.first, m.first, q.first};
  auto statements = updateStatements(loop, names);
  if (!statements)
    return std::nullopt;
  SymbolicIteration iteration([](const ExprRef &e) { return e; },
                              [](const ExprRef &) { return std::optional<bool>(); });
  if (!iteration.run(*statements))
    return std::nullopt;
  ExprRef count = var(n.first, n.second), mean = var(m.first, m.second), squares = var(q.first, q.second);
  ExprRef newCount = iteration.value(n.first, n.second), newMean = iteration.value(m.first, m.second),
          newSquares = iteration.value(q.first, q.second), x;
  bool counts = eitherWay(unconverted(newCount), "+",
                          [&](const ExprRef &a, const ExprRef &b) { return equal(a, count) && numberOf(b) == 1.0; });
  auto isCount = [&](const ExprRef &e) { return equal(unconverted(e), unconverted(newCount)); };
  auto takeX = [&](const ExprRef &e) {
    if (!isBinary(e, "-") || !equal(e->args[1], mean))
      return false;
    x = e->args[0];
    return true;
  };
  bool moves = counts && eitherWay(newMean, "+", [&](const ExprRef &old, const ExprRef &step) {
                 if (!equal(old, mean) || step->kind != ExprKind::Binary || !step->type.isFloat())
                   return false;
                 if (step->text == "/")
                   return isCount(step->args[1]) && takeX(step->args[0]);
                 return eitherWay(step, "*", [&](const ExprRef &inverse, const ExprRef &distance) {
                   return isBinary(inverse, "/") && inverse->type.isFloat() && numberOf(inverse->args[0]) == 1.0 &&
                          isCount(inverse->args[1]) && takeX(distance);
                 });
               });
  if (!moves || llvm::any_of(names, [&](const std::string &name) { return mentions(x, name); }))
    return std::nullopt;
  bool squared = eitherWay(newSquares, "+", [&](const ExprRef &old, const ExprRef &product) {
    return equal(old, squares) && eitherWay(product, "*", [&](const ExprRef &before, const ExprRef &after) {
             return isDifference(before, x, mean) && isDifference(after, x, newMean);
           });
  });
  if (!squared)
    return std::nullopt;
  return RunningMoments{n.first, m.first, q.first, n.second, m.second, *statements};
}

std::optional<RunningMoments> optiml::findRunningMoments(Stmt &loop) {
  if (loop.body.empty() || loop.body[0]->kind != StmtKind::Block)
    return std::nullopt;
  std::map<std::string, Type> numbers = assignedNumbers(loop), counts = numbers;
  std::set<std::string> inside = namesDeclaredIn(loop);
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    bool changes = isChange(e) && e->args[0]->kind == ExprKind::Var;
    if (changes && !inside.count(e->args[0]->text) &&
        (e->args[0]->type.isFloat() || e->args[0]->type.cls == Type::Class::Int))
      counts[e->args[0]->text] = e->args[0]->type;
  });
  for (const auto &n : counts)
    for (const auto &m : numbers)
      for (const auto &q : numbers)
        if (n.first != m.first && n.first != q.first && m.first != q.first && m.second.bytes == q.second.bytes &&
            (n.second.bytes == 4 || n.second.bytes == 8) && !n.second.isVolatile)
          if (auto found = moments(loop, n, m, q))
            return found;
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
