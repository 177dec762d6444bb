//===- OwnState.h - what a loop carries, in variables of its own -*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_OWNSTATE_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_OWNSTATE_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// Scalars from outside of the loop that it assigns.
std::map<std::string, Type> assignedOutside(Stmt &loop);

/// "if (a[m] < a[j]) m = j;" becomes "if (a_at_m < a[j]) { m = j; a_at_m = a[j]; }": the element at a place that a
/// counted loop carries is carried with it, where nothing in the loop writes the array.
void carryElements(Kernel &kernel);

/// "mean += d / (j + 1);" becomes "++count; mean += d / count;": a mean and a sum of squares that Welford's update
/// makes with the loop's counter for a count get one of their own, which threads can have each for itself. Loops in
/// which that gives no running moments stay.
void countOwn(Kernel &kernel);

} // namespace optiml

#endif
