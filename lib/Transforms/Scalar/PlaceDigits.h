//===- PlaceDigits.h - private arrays of several dimensions -----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SCALAR_PLACEDIGITS_H
#define OPTIML_LIB_TRANSFORMS_SCALAR_PLACEDIGITS_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "float g[24]; g[kind * 8 + q]", where q is the counter of a loop from 0 to 8 at most, as "float g[3][8];
/// g[kind][q]": then only the first index is unknown until run time. Nothing is changed where the array's places have
/// no such digits. `declaration` is that of a private array in the kernel, which is used as an array alone.
void splitPlaces(Kernel &kernel, Stmt &declaration);

} // namespace optiml

#endif
