//===- Jumps.h - early exits as conditions ----------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_JUMPS_H
#define OPTIML_ANALYSIS_JUMPS_H

#include "optiml/Analysis/Tree.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Rewrites `if (c) return; rest` to `if (!c) { rest }` at the outermost levels of a kernel's body. A return elsewhere
/// is NotApplicable; what was rewritten until then means what it meant.
llvm::Error removeReturns(Stmt &body);

/// The same for `continue`, in every loop under `s`. What ends no branch stays.
void removeContinues(Stmt &s);

} // namespace optiml

#endif
