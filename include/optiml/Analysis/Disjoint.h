//===- Disjoint.h - arrays that do not overlap ------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_DISJOINT_H
#define OPTIML_ANALYSIS_DISJOINT_H

#include "optiml/Analysis/KernelState.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace optiml {

class KernelModel;

/// A place for what requireDisjoint finds about this kernel, once for all states that share it.
std::shared_ptr<TouchedRanges> touchedRanges(std::shared_ptr<const Kernel> original);

/// Records in `state` the run-time conditions under which arrays `a` and `b` (pointer parameters) do not overlap, as
/// far as the kernel touches them. Nothing to record when the source promises it by __restrict__. Where the touched
/// ranges cannot be bounded (data tell an index), they must lie in different allocations. NotApplicable when neither
/// can be asked. `byType`: where no range is known, C++'s rule about the types of objects may stand for it; it says
/// nothing of accesses by different kernels. `firstOfA`: only so many elements of `a`, from its beginning on, matter;
/// 0: all that the kernel touches.
llvm::Error requireDisjoint(KernelState &state, const KernelModel &model, const std::string &a, const std::string &b,
                            bool byType = true, int64_t firstOfA = 0);

} // namespace optiml

#endif
