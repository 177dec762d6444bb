//===- IterationCases.h - what one iteration makes of variables -*- C++ -*-===//
//
// Accumulators over several variables at once (an extreme with its place, a maximum with a sum in its scale, a mean
// with a sum of squares) are written in many ways. What counts is what an iteration makes of the variables: here its
// statements are run, case by case.
//
// Numbers are elements of a finite field, where sums and products may be arranged in any way, and two formulas that
// agree at random values agree everywhere, but for a chance of less than 2^-50 (Schwartz and Zippel's lemma; the
// degrees are below 2^10). An exponential takes the second of a pair of fields to the first, as the order q of its base
// divides p - 1 (Wu et al., Mirage, OSDI 2025). Which of two numbers is greater is a matter of the case.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_ITERATIONCASES_H
#define OPTIML_ANALYSIS_ITERATIONCASES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// A number modulo p, and modulo q where it is no exponential's value.
struct FieldNumber {
  uint64_t p = 0, q = 0;
  bool hasQ = true;
  static FieldNumber of(int64_t n);
  static FieldNumber random(uint64_t seed);
  friend FieldNumber operator+(const FieldNumber &a, const FieldNumber &b);
  friend FieldNumber operator-(const FieldNumber &a, const FieldNumber &b);
  friend FieldNumber operator*(const FieldNumber &a, const FieldNumber &b);
  std::optional<FieldNumber> inverse() const; ///< none of zero
  std::optional<FieldNumber> exponential() const;
  bool operator==(const FieldNumber &o) const { return p == o.p; }
};

/// What a variable or an expression is after some statements.
struct IterationValue {
  FieldNumber number;
  std::string old; ///< the variable whose value before the iteration it is
  ExprRef outside; ///< what it is where the iteration's statements do not compute it
};

/// How an outside value compares with the variable that it is compared with.
enum class Order { Above, Below, Equal, Unordered };

/// One way through the statements.
struct IterationCase {
  std::string extreme; ///< the variable that a value from outside is compared with
  ExprRef compared;    ///< this value
  std::optional<Order> order;
  std::map<std::string, bool> outside;          ///< conditions on values from outside, by text
  std::map<std::string, bool> places;           ///< "value < variable" of integers: what is kept beside an extreme
  std::map<std::string, bool> flags;            ///< variables that are asked for their truth
  std::map<std::string, bool> isLeast;          ///< variables that are compared with the least number there is
  std::map<std::string, IterationValue> values; ///< afterwards, by variable
  bool changes(const std::string &variable) const;
};

struct IterationCases {
  std::vector<IterationCase> cases;
  std::set<std::string> functions; ///< exponentials
  std::vector<ExprRef> outsiders;  ///< floating-point values from outside
  std::vector<Stmt *> statements;  ///< those that were run
  FieldNumber before(const std::string &variable, const IterationCase &c) const;
  FieldNumber numberOf(const ExprRef &outside, const IterationCase &c) const;
  uint64_t seed = 0; ///< of what the variables were before
};

/// All ways through the statements of the loop's body that have to do with the variables; nothing where there are more
/// than 64, or a statement does something else. `seed` draws what the variables were before the iteration.
std::optional<IterationCases> casesOf(Stmt &loop, std::set<std::string> variables, uint64_t seed);

/// The statements of the loop's body that mention one of `names`, or (joining `names`) a variable that one of them
/// declares. Nothing when they have other effects than to change these.
std::optional<std::vector<Stmt *>> updateStatements(Stmt &loop, std::set<std::string> &names);

/// The number that a literal stands for.
std::optional<double> numberOf(const ExprRef &e);

} // namespace optiml

#endif
