//===- Pointees.h - pointers that only name a local variable ----*- C++ -*-===//
#ifndef OPTIML_LIB_ANALYSIS_POINTEES_H
#define OPTIML_LIB_ANALYSIS_POINTEES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "S *p = &s; p->n += 1;", as a helper that is read in place leaves it, becomes "s.n += 1;": local pointers that
/// always point to one local variable, and are only followed, go.
void namePointees(Kernel &kernel);

} // namespace optiml

#endif
