//===- SinkTurns.h - a loop of turns, further inside ------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_SINKTURNS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_SINKTURNS_H

#include "optiml/Analysis/Tree.h"
#include <set>

namespace optiml {

/// for (turn …) { values of the turn; int x = …; if (x < n) for (z …) body }  becomes
/// int x = …; if (x < n) for (z …) for (turn …) { values of the turn; body }
/// as far as nothing depends on the turn, and no iteration over z needs what another one has done. `turn`: the variable
/// of a loop in the kernel's own list, whose first statements, some of `values`, stay in it.
void sinkTurns(Kernel &kernel, const std::string &turn, const std::set<const Stmt *> &values);

} // namespace optiml

#endif
