//===- ClosureStep.h - one step of a closure over a semiring ----*- C++ -*-===//
//
// Shortest paths between all pairs, widest paths, and what can be reached: n launches, the k-th of which allows paths
// through vertex k (Floyd, CACM 5(6), 1962; Warshall, JACM 9(1), 1962).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_CLOSURESTEP_H
#define OPTIML_TRANSFORMS_CLOSURESTEP_H

#include "optiml/Analysis/Tree.h"
#include "optiml/Core/LaunchRewrites.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// The idiom of a kernel that does m[i][j] = m[i][j] op (m[i][k] with m[k][j]) for all cells of a square matrix, `k`
/// being an argument. NotApplicable tells why it is none.
llvm::Expected<LaunchIdiom> recognizeClosureStep(const Kernel &kernel);

} // namespace optiml

#endif
