//===- SharedTree.h - folds of shared memory by a block ---------*- C++ -*-===//
//
// "for (s = blockDim.x / 2; s > 0; s /= 2) { if (t < s) a[t] += a[t + s]; __syncthreads(); }" and everything that comes to
// the same: statements after which a[0] holds the fold of what every thread had put into its own element. They are
// recognized by running them on sets of threads in place of values, so that how they are written does not matter.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_SHAREDTREE_H
#define OPTIML_LIB_TRANSFORMS_SHAREDTREE_H

#include "Reduction.h"
#include "SharedPlaces.h"

namespace optiml {

/// What becomes of one array.
struct SharedTree {
  std::string array;
  Type type;
  Fold fold;
};

/// Statements that fold arrays; nothing else is done by them, and they synchronize.
struct TreeRegion : StatementRange {
  std::vector<SharedTree> trees;
};

/// The regions of a kernel whose blocks have `threads` threads along x (at most 1024). Every fold is one of elements
/// 0 to threads - 1 into element 0, with no two threads at one element between barriers.
std::vector<TreeRegion> findTrees(Kernel &kernel, const KernelModel &model, int64_t threads);

} // namespace optiml

#endif
