//===- AsyncCopy.h - copies into shared memory in the background -*- C++ -*-===//
//
// cp.async, which GPUs have since compute capability 8.0: a thread starts copies from global to shared memory, closes a
// group of them, and goes on; later it waits until all but its latest groups have arrived. Other threads see what
// arrived behind a barrier after that. The instructions are written as inline PTX in small device functions before the
// kernel.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_ASYNCCOPY_H
#define OPTIML_LIB_TRANSFORMS_STAGING_ASYNCCOPY_H

#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// Makes calls of these functions for one kernel; the functions that are called join its helpers.
class AsyncCopy {
public:
  explicit AsyncCopy(KernelState &state) : state(state) {}

  /// NotApplicable where the program is compiled for GPUs that have no such copies.
  static llvm::Error requireSupport(const KernelState &state);

  /// Copies `bytes` (4, 8 or 16; both places are aligned to that) from the element `from` to the element `to`. Where
  /// `inside` does not hold, nothing is read and zeros arrive; null: it holds everywhere.
  StmtRef copy(const ExprRef &to, const ExprRef &from, unsigned bytes, const ExprRef &inside);
  /// Closes a group.
  StmtRef commit();
  /// Waits until all groups of this thread have arrived but for the `pending` latest ones.
  StmtRef wait(unsigned pending);

private:
  StmtRef call(const std::string &suffix, const std::string &parameters, const std::string &assembly,
               std::vector<ExprRef> args);

  KernelState &state;
};

} // namespace optiml

#endif
