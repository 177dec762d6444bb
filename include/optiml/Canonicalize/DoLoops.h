//===- DoLoops.h - loops that test at their end -----------------*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_DOLOOPS_H
#define OPTIML_CANONICALIZE_DOLOOPS_H

#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// "int j = 0; do { … } while (++j < n);" becomes "for (int j = 0; j < n; ++j) { … }", under the condition that n is at
/// least 1, which goes to `state`. Loops of which no condition on the launch says that they run stay.
void countDoLoops(KernelState &state, Kernel &kernel);

} // namespace optiml

#endif
