//===- LoopBounds.h - loops that count from bound to bound ------*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_LOOPBOUNDS_H
#define OPTIML_CANONICALIZE_LOOPBOUNDS_H

#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// "for (at = row; at < end; at += rows)" becomes a loop over a number of iterations that is computed before, with `at`
/// made of its counter, under the condition that rows is at least 1, which goes to `state`.
void countStridedLoops(KernelState &state, Kernel &kernel);

/// "for (k = 0; k < chunk; ++k) { int i = first + k; if (i >= n) break; … }" becomes "for (k = 0; k < min(chunk, n -
/// first); ++k) { int i = first + k; … }": where nothing runs before the break, and the counter decides it.
void boundBreakingLoops(Kernel &kernel);

/// "for (d = -1; d <= 1; ++d)" becomes "for (d = 0; d < 3; ++d)", with d - 1 in place of d: loops between constants, of
/// few iterations.
void countFromZero(Kernel &kernel);

} // namespace optiml

#endif
