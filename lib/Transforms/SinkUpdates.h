//===- SinkUpdates.h - atomic updates by what a loop sums up ----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SINKUPDATES_H
#define OPTIML_LIB_TRANSFORMS_SINKUPDATES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "float s = 0; for (…) s += x; atomicAdd(out, s);" becomes "for (…) atomicAdd(out, x);" where nothing but such
/// updates follows the loop, so that its iterations carry no sum any more and other threads can do them. Old values of
/// the updates are not used, and the loop reads nothing of what decides the place. Floating-point sums change their
/// order: not with `strictFloat`.
void sinkUpdates(Kernel &kernel, bool strictFloat);

} // namespace optiml

#endif
