//===- SeveralRows.h - several rows for a group of lanes --------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_SEVERALROWS_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_SEVERALROWS_H

#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Poly.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Gives each group of lanes the work of `each` neighbouring ones: globalIdx.x, the row of a group, stands for the
/// first of its rows afterwards, a multiple of `each`. The lanes of a group must work within a warp, and know their row
/// by globalIdx.x alone. `end`: all effects stand under globalIdx.x < end, where that is known (Bounds.h). Records in
/// `state` that the rows fill whole groups, where their number is known. NotApplicable where statements cannot be
/// repeated for each row.
llvm::Error giveSeveralRows(KernelState &state, Kernel &kernel, int64_t each, const std::optional<Poly> &end);

/// Rows read the same elements: a loop has an access that does not depend on globalIdx.x, but on the loop's counter.
bool rowsShareReads(const Kernel &kernel);

} // namespace optiml

#endif
