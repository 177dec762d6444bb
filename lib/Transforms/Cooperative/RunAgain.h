//===- RunAgain.h - loops that run again as they were -----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_RUNAGAIN_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_RUNAGAIN_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

struct RunsAgain {
  std::set<const Stmt *> loops;      ///< whose result does not count where a value is no number
  std::set<const Stmt *> asTheyWere; ///< the same loops, for that case
};

/// "if (!(x <= m)) m = x;": an extreme that a NaN replaces depends on the order of the iterations. The loop notes
/// whether there is one, and is followed by itself under that condition, from what its variables were before.
RunsAgain runAgainWhereUnordered(Kernel &kernel);

} // namespace optiml

#endif
