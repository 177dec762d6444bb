//===- Jumps.h - early exits as conditions ----------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_JUMPS_H
#define OPTIML_ANALYSIS_JUMPS_H

#include "optiml/Analysis/Tree.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Turns "return v;" into "target = v;" (or nothing, for a null target), and what follows a return that is taken under
/// a condition into the other branch. From within a loop, or where both branches may go on, `returned` becomes true;
/// loops are left, and what follows runs where it is still false. False when it cannot, as without `returned` (null).
bool structureReturns(std::vector<StmtRef> &list, const ExprRef &target, const ExprRef &returned);

/// The same for a kernel's own body.
llvm::Error removeReturns(Kernel &kernel);

/// Rewrites `if (c) continue; rest` to `if (!c) { rest }`, in every loop under `s`. What ends no branch stays.
void removeContinues(Stmt &s);

/// "do { … if (c) break; … } while (0)" of a macro: its body can stand for it, of which breaks become conditions.
bool runsOnce(Stmt &loop);

/// A break or return in `s`, a loop's body, leaves the loop.
bool leavesEarly(const Stmt &s, bool isNested = false);
/// A return, break or continue in `s` leads out of it. `breaks`: those of the last two kinds count.
bool jumpsOut(const Stmt &s, bool breaks = true);

} // namespace optiml

#endif
