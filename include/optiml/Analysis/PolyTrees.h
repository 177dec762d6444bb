//===- PolyTrees.h - polynomials as trees -----------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_POLYTREES_H
#define OPTIML_ANALYSIS_POLYTREES_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// Tree of a polynomial, typed int (or wider when an atom is).
ExprRef polyExpr(const KernelModel &model, const Poly &p);
/// The same computed in 64 bits, for indices that the source computes so.
ExprRef wideExpr(const ExprRef &e);
/// Of parameters: as a signed number of 32 bits, whatever their types are.
ExprRef intExpr(const KernelModel &model, const Poly &p);
/// The element at linear index `index` of the array that `access` accesses.
ExprRef elementExpr(const KernelModel &model, const Access &access, const Poly &index);

} // namespace optiml

#endif
