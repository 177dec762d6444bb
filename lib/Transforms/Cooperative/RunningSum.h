//===- RunningSum.h - scans along the loop of one thread --------*- C++ -*-===//
//
// A loop that folds a value into a scalar and looks at the scalar in every iteration ("s += x[i]; y[i] = s;") is a
// scan. A group of threads takes as many iterations at a time as it has threads, and shuffles give each of them what
// the scalar is in its iteration.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_RUNNINGSUM_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_RUNNINGSUM_H

#include "Reduction.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Support/Error.h"

namespace optiml {

/// The body of such a loop. `folded` and what comes first do not depend on the scalar.
struct RunningSum {
  FoldedValue folded;
  std::vector<StmtRef> first;  ///< declarations, which read memory at most
  std::vector<StmtRef> before; ///< what sees the scalar as it was when the iteration began, or comes with it
  std::vector<StmtRef> after;  ///< what sees it as the iteration leaves it
};

/// The scalar of `loop` that is folded and seen; NotApplicable where there is none, or the parts cannot be told apart.
llvm::Expected<RunningSum> findRunningSum(Stmt &loop, const CountedLoop &counted, bool strictFloat);

/// The loop by a group whose threads all get here: afterwards each holds the scalar as the loop leaves it. Blocks have
/// barriers in it. A thread takes `items` neighbouring iterations at a time. Statements before the loop, and the loop
/// last.
std::vector<StmtRef> scanByGroup(const RunningSum &scan, const CountedLoop &counted, const ThreadGroup &group,
                                 int64_t items, std::set<std::string> &taken);

} // namespace optiml

#endif
