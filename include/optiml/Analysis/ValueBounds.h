//===- ValueBounds.h - between what an index lies ---------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_VALUEBOUNDS_H
#define OPTIML_ANALYSIS_VALUEBOUNDS_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// An expression is at least one of `least` and at most one of `greatest`, which are polynomials in parameters: one of
/// each for everything that a local in it may have been assigned.
struct ValueBounds {
  std::vector<Poly> least, greatest;
};

/// Of an integer expression where `access` stands. One of its locals may be assigned several times, whatever decides
/// which of these counts ("best = 0; for (c …) if (…) best = c;"). Nothing where that is not known.
std::optional<ValueBounds> valueBounds(const KernelModel &model, const Access &access, const ExprRef &e);

/// Records in `state` under what conditions 0 <= e < end wherever the access is made. False, and nothing is recorded,
/// where that is not known.
bool requireBelow(KernelState &state, const KernelModel &model, const Access &access, const ExprRef &e, int64_t end,
                  const std::string &why);

} // namespace optiml

#endif
