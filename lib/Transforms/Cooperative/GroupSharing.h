//===- GroupSharing.h - the work of one thread, by a group ------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_GROUPSHARING_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_GROUPSHARING_H

#include "Reduction.h"
#include "RunAgain.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"

namespace optiml {

struct GroupSharing {
  ThreadGroup group;
  bool filters = false;                ///< values that cannot be among the best are left out of sorted arrays
  int64_t entries = 0;                 ///< elements of sorted arrays that are kept; 0: as many as there are
  int64_t items = 1;                   ///< iterations of a running sum that a thread takes at a time
  std::set<const Stmt *> forOneThread; ///< statements that only the first thread of a group runs
  RunsAgain again;
};

/// Makes what one thread of the kernel does the work of a group, along x. What it needs is required of `state`.
/// NotApplicable where no loop can be shared out, or something of `wanted` finds no use.
llvm::Error shareAmongGroup(KernelState &state, Kernel &kernel, const KernelModel &model, GroupSharing wanted);

} // namespace optiml

#endif
