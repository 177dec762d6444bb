//===- SteppedPlaces.h - loops from place to place of an array --*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_STEPPEDPLACES_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_STEPPEDPLACES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "while (k > 0 && a[k - 1] > v) { a[k] = a[k - 1]; --k; }" goes through the places of a private array in order, from
/// one that is only known at run time, until something stops it. It becomes a loop over all places, which is unrolled
/// completely, whose iterations do something where k has that place: the places in it are constants then. As are loops
/// around it that have a constant number of iterations. `declaration` is that of the array, which is used as an array
/// alone.
void visitEveryPlace(Kernel &kernel, const Stmt &declaration);

} // namespace optiml

#endif
