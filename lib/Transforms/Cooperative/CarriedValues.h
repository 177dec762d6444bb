//===- CarriedValues.h - what an iteration hands to the next ----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_CARRIEDVALUES_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_CARRIEDVALUES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "float s[3];", of which only elements with constant indices are used, becomes three variables.
void splitLocalArrays(Kernel &kernel);

/// "new_m = old_m + …; …; old_m = new_m;": what two variables both are before and after each iteration, one of them is,
/// and an iteration keeps a copy.
void keepOneOfCopies(Kernel &kernel);

/// "if (x[j] < previous) …; previous = x[j];" becomes "if (x[j] < (j == 1 ? previous : x[j - 1])) …": what an iteration
/// computes of its counter alone, the next one computes for itself. Only in loops that become reductions by it.
void recomputePrevious(Kernel &kernel);

} // namespace optiml

#endif
