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

/// "do { … if (c) break; … } while (0)" of a macro: its body can stand for it, of which breaks become conditions.
bool runsOnce(Stmt &loop);

/// A break or return in `s`, a loop's body, leaves the loop.
bool leavesEarly(const Stmt &s, bool isNested = false);
/// A return, break or continue in `s` leads out of it. `breaks`: those of the last two kinds count.
bool jumpsOut(const Stmt &s, bool breaks = true);

} // namespace optiml

#endif
