//===- JointUpdates.h - scalars that a loop updates together ----*- C++ -*-===//
//
// The normalizer of an online softmax: a pair (m, s), m the largest x so far, s the sum of exp(x - m) so far (times a
// weight, if there is one), which is scaled by exp(old m - new m) when m grows. Two such pairs of different parts
// combine to one: the larger m, and both sums scaled to it.
//
// Welford's mean and variance (1962): a triple (n, mean, m2) that every iteration updates by one number x. Two triples
// of different parts combine to that of all (Chan, Golub and LeVeque, 1979).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_JOINTUPDATES_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_JOINTUPDATES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

struct RescaledSum {
  std::string extreme, sum; ///< m and s
  Type type;                ///< of both
  std::string function;     ///< expf, exp2f, …
  ExprRef unordered = {};   ///< the x after which the order matters where it is no number; null: none
};

/// The pair that the loop updates, however it is written; nothing when it does anything else with it. `assigned`: what
/// the loop assigns that is declared before it.
std::optional<RescaledSum> findRescaledSum(Stmt &loop, const std::map<std::string, Type> &assigned);

/// Before a part other than the first: m starts at the least number where it is -infinity. exp(m - m) would otherwise
/// be no number in a part that holds nothing else, such as a masked one.
StmtRef startAtNumber(const RescaledSum &pair);
/// After it: m is `start` again, what it was before, where the part has added nothing.
StmtRef restoreStart(const RescaledSum &pair, const ExprRef &start);

/// Takes another thread's pair in: its m and s are in the variables `otherExtreme` and `otherSum`.
StmtRef combineRescaled(const RescaledSum &pair, const ExprRef &otherExtreme, const ExprRef &otherSum);

struct RunningMoments {
  std::string count, mean, squares; ///< n, mean, and the sum of squared distances from it
  Type countType, type;
};

/// The triple that the loop updates, however it is written; nothing when it does anything else with it.
std::optional<RunningMoments> findRunningMoments(Stmt &loop, const std::map<std::string, Type> &assigned);

/// Takes another thread's triple in, which is in these variables. `taken`: names join it.
StmtRef combineMoments(const RunningMoments &moments, const ExprRef &count, const ExprRef &mean, const ExprRef &squares,
                       std::set<std::string> &taken);

/// The extreme of x over the iterations, and beside it values that belong to the x that is kept.
struct PlacedExtreme {
  std::string extreme;
  Type type;
  bool isMaximum = true;
  std::vector<std::pair<std::string, Type>> kept;
  std::map<std::string, ExprRef> values; ///< what each of them becomes
  /// Of equal x: the first one stays, or the last one, or the one with the lesser or greater value of `decides`.
  enum class Tie { First, Last, Lesser, Greater } tie = Tie::First;
  std::string decides;
  std::string flag;  ///< the variable that is 0 until something has come; empty: the extreme has a value to begin with
  ExprRef unordered; ///< the x that is taken where it cannot be compared, so that the order matters; null: none
};

/// The assigned variables in groups: those of a group are mentioned by the same statements of the loop's body.
std::vector<std::set<std::string>> jointVariables(Stmt &loop, const std::map<std::string, Type> &assigned);

/// Such an extreme, however it is written.
std::optional<PlacedExtreme> findPlacedExtreme(Stmt &loop, const std::map<std::string, Type> &assigned);

/// A variable to which iterations add what does not depend on it, however it is written; with its type.
std::optional<std::pair<std::string, Type>> findSum(Stmt &loop, const std::map<std::string, Type> &assigned);

} // namespace optiml

#endif
