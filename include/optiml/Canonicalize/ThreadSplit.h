//===- ThreadSplit.h - two thread indices in place of one -------*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_THREADSPLIT_H
#define OPTIML_CANONICALIZE_THREADSPLIT_H

#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// For a kernel of one axis that takes its thread index apart (threadIdx.x / 32 and threadIdx.x % 32): how it is
/// written for blocks of two axes, one for the quotient and one for the remainder.
struct ThreadSplit {
  int64_t divisor = 0, quotients = 0;
};
/// Nothing where the index is not taken apart, or in several ways. `block`: the block shape.
std::optional<ThreadSplit> findThreadSplit(Kernel &kernel, const std::array<int64_t, 3> &block);

/// Rewrites the kernel for that; `quotientAlongX`: which of the two is threadIdx.x. `state` gets the launch and its
/// conditions.
void splitThreads(KernelState &state, Kernel &kernel, const ThreadSplit &split, bool quotientAlongX);

} // namespace optiml

#endif
