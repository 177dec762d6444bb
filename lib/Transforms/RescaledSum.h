//===- RescaledSum.h - the normalizer of an online softmax ------*- C++ -*-===//
//
// A pair (m, s): m the largest x so far, s the sum of exp(x - m) so far (times a weight, if there is one), which is
// scaled by exp(old m - new m) when m grows. Two such pairs of different parts combine to one: the larger m, and both
// sums scaled to it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_RESCALEDSUM_H
#define OPTIML_LIB_TRANSFORMS_RESCALEDSUM_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

struct RescaledSum {
  std::string extreme, sum;       ///< m and s
  Type type;                      ///< of both
  std::string function;           ///< expf, exp2f, …
  std::vector<Stmt *> statements; ///< of the loop's body: all that mention m or s
};

/// The pair that the loop updates in every iteration, however it is written; nothing when it does anything else with
/// it.
std::optional<RescaledSum> findRescaledSum(Stmt &loop);

/// Takes another thread's pair in: its m and s are in the variables `otherExtreme` and `otherSum`.
StmtRef combineRescaled(const RescaledSum &pair, const ExprRef &otherExtreme, const ExprRef &otherSum);

} // namespace optiml

#endif
