//===- FirstIteration.h - extremes that begin with an element ---*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_FIRSTITERATION_H
#define OPTIML_CANONICALIZE_FIRSTITERATION_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "m = x[0]; for (c = 1; c < n; ++c) if (x[c] > m) m = x[c];" begins at 0: that iteration changes nothing, and the
/// loop counts like others over the same elements.
void beginAtFirstElement(Kernel &kernel);

} // namespace optiml

#endif
