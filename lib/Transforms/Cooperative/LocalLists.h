//===- LocalLists.h - lists of the k best, moved into local arrays -*- C++ -*-===//
//
// A thread that keeps the k best values in memory, or counts how many it has so far, does the same in a filled array of
// its own, whose entries it stores when the loop is over. That is the form which SortedFold.h shares out.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_LOCALLISTS_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_LOCALLISTS_H

#include "optiml/Analysis/KernelState.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Moves the lists of the kernel's loops into arrays of `entries` elements (0: as many as a constant length needs);
/// a list that does not allow it stays. What the thread's own array cannot tell apart from an entry that is not there
/// (no number, the least one) makes it run the loop again as it was: the statements returned, which are for one thread.
std::set<const Stmt *> moveListsIntoArrays(KernelState &state, Kernel &kernel, int64_t entries);

} // namespace optiml

#endif
