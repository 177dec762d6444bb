//===- SymbolicIteration.h - what one iteration makes of variables -*- C++ -*-===//
//
// Reductions over several variables at once (a maximum with a sum in its scale, a mean with a sum of squares) are
// written in many ways. What counts is what an iteration makes of the variables: here its statements are evaluated to
// expressions of the values before it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_SYMBOLICITERATION_H
#define OPTIML_ANALYSIS_SYMBOLICITERATION_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

class SymbolicIteration {
public:
  /// `simplify`: another form of an expression of values (itself where there is none). `decide`: the value of a
  /// condition, where it is known.
  SymbolicIteration(std::function<ExprRef(const ExprRef &)> simplify,
                    std::function<std::optional<bool>(const ExprRef &)> decide)
      : simplify(std::move(simplify)), decide(std::move(decide)) {}
  /// False when a statement is more than declarations, assignments to variables, and branches that are decided.
  bool run(const std::vector<Stmt *> &statements);
  /// What a variable is at the end, in terms of what all were before.
  ExprRef value(const std::string &name, const Type &type) const;

private:
  bool run(Stmt &s);
  ExprRef evaluate(const ExprRef &e) const;
  std::map<std::string, ExprRef> values;
  std::function<ExprRef(const ExprRef &)> simplify;
  std::function<std::optional<bool>(const ExprRef &)> decide;
};

/// The statements of the loop's body that mention one of `names`, or (joining `names`) a variable that one of them
/// declares. Nothing when they have other effects than to change these.
std::optional<std::vector<Stmt *>> updateStatements(Stmt &loop, std::set<std::string> &names);

/// The number that a literal stands for.
std::optional<double> numberOf(const ExprRef &e);
/// The operands of + or * in both orders.
template <typename F> bool eitherWay(const ExprRef &e, const char *op, F f) {
  return e->kind == ExprKind::Binary && e->text == op && (f(e->args[0], e->args[1]) || f(e->args[1], e->args[0]));
}
/// Floating-point variables from outside that the loop assigns.
std::map<std::string, Type> assignedNumbers(Stmt &loop);

} // namespace optiml

#endif
