//===- Matches.h - what a loop finds, with its place ------------*- C++ -*-===//
//
// A search that runs to the end: "if (!found && x > t) { found = true; at = j; }" keeps the first match, and
// "if (x > t) at = j;" the last one. Each thread can look for its own, and the first or last of these is the result,
// if it is known where each was found.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_MATCHES_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_MATCHES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// Variables that get values which do not depend on them.
struct Match {
  std::map<std::string, ExprRef> values; ///< what each of them becomes
  /// The variable that is 1 afterwards; empty where there is none.
  std::string flag;
  bool isFirst = false; ///< iterations take nothing any more once the flag is set; else the last match stays
};

/// Such variables, however it is written.
std::optional<Match> findMatch(Stmt &loop, const std::map<std::string, Type> &assigned);

/// In counted loops that are no reductions (Reduction.h) and become some by it: a test of what only a match makes so
/// ("at < 0", "first != UINT_MAX") becomes one of a flag, and where a match was found is kept beside it.
void markMatches(Kernel &kernel);

} // namespace optiml

#endif
