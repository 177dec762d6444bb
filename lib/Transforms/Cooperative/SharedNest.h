//===- SharedNest.h - which loop of a nest a group shares out ---*- C++ -*-===//
//
// Loops in one another that do nothing but fold values into scalars may be shared out at any depth, and at two at once:
// whatever a thread takes, what it folds is combined after the outermost. Neighbouring threads then take neighbouring
// elements.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_SHAREDNEST_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_SHAREDNEST_H

#include "Reduction.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Tree.h"

namespace optiml {

/// A loop, and how many threads share it out.
struct SharedLoop {
  CountedLoop loop;
  int64_t threads;
  bool byWarps = false; ///< a warp takes an iteration, else a thread
};

/// The loops within `outermost` that a group of so many threads should share out in its place: the one along which
/// neighbouring elements are read and, where it is too short for a block, also the one around it, by warps. Between the
/// loops stand only declarations. Empty: there are none, or it reads neighbours itself.
std::vector<SharedLoop> loopsOfNeighbours(const KernelModel &model, const KernelState &state,
                                          const CountedLoop &outermost, int64_t threads);

/// What of these comes first, or with what else, does not matter to it.
bool isUnordered(const Reduction &r);

} // namespace optiml

#endif
