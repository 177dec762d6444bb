//===- StripLoops.h - strip-mined loops as one ------------------*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_STRIPLOOPS_H
#define OPTIML_CANONICALIZE_STRIPLOOPS_H

#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// Two loops, one the other's whole body, become one loop where the inner one runs over the strips of the outer one:
///
///   for (t = 0; t < (n + 15) / 16; ++t)           for (k = 0; k < n; ++k)
///     for (k = 0; k < 16; ++k)                      s += a[k];
///       s += t * 16 + k < n ? a[t * 16 + k] : 0;
///
/// The one loop ends where the last iterations add nothing but zeros, or at the size that the number of strips was made
/// from (a condition in `state`: it is a multiple of the strip), or after all strips. Nothing in a strip may wait for
/// other threads. `block`: the block shape.
void mergeStrips(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &block);

} // namespace optiml

#endif
