//===- RunningMoments.h - Welford's mean and variance -----------*- C++ -*-===//
//
// A triple (n, mean, m2) that every iteration updates by one number x (Welford, 1962). Two triples of different parts
// combine to that of all (Chan, Golub and LeVeque, 1979).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_RUNNINGMOMENTS_H
#define OPTIML_LIB_TRANSFORMS_RUNNINGMOMENTS_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

struct RunningMoments {
  std::string count, mean, squares; ///< n, mean, and the sum of squared distances from it
  Type countType, type;
  std::vector<Stmt *> statements; ///< of the loop's body: all that mention one of them
};

/// The triple that the loop updates in every iteration, however it is written; nothing when it does anything else with
/// it.
std::optional<RunningMoments> findRunningMoments(Stmt &loop);

/// Takes another thread's triple in, which is in these variables. `taken`: names join it.
StmtRef combineMoments(const RunningMoments &moments, const ExprRef &count, const ExprRef &mean, const ExprRef &squares,
                       std::set<std::string> &taken);

} // namespace optiml

#endif
