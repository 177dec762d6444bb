//===- SharedScan.h - scans and folds of shared memory by a block -*- C++ -*-===//
//
// Statements after which a block's shared memory (or a register of each thread) holds, for each thread, the fold of
// what all threads up to it had: Hillis and Steele's steps with one array or two, sweeps up and down a tree, and
// everything that comes to the same. They are recognized by running them on sets of threads in place of values, so that
// how they are written does not matter. In the same way, folds: "for (s = blockDim.x / 2; s > 0; s /= 2) { if (t < s)
// a[t] += a[t + s]; __syncthreads(); }" and all others after which a[0] holds the fold of what every thread had put
// into its own element.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_SHAREDSCAN_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_SHAREDSCAN_H

#include "Reduction.h"
#include "optiml/Analysis/SharedPlaces.h"
#include "optiml/Support/Error.h"

namespace optiml {

struct SharedScan : StatementRange {
  Fold fold;
  Type type;
  /// Each thread's own value before: a local variable, or element first + t of a shared array.
  struct Place {
    std::string name;
    int64_t first = -1;       ///< -1: a local variable
    bool isExclusive = false; ///< (of a result) without the thread's own value
  };
  Place source;
  std::vector<Place> results;
  /// By array, the elements that the statements have written and that hold no result.
  std::map<std::string, std::set<int64_t>> spoilt;
  /// Local integers, alike in all threads: their values afterwards, and which of them the statements have changed.
  std::map<std::string, int64_t> integers;
  std::set<std::string> changed;
  std::set<const Stmt *> stores; ///< before the range, of each thread's own value
};

/// Whether a scan or a fold may begin with the statement: it stores into shared memory, or may hold steps.
bool mayStart(const Stmt &s);

/// The scans of a kernel whose blocks have `threads` threads along x (at most 1024), with no two threads at one element
/// between barriers. What is done with the arrays elsewhere was not looked at.
std::vector<SharedScan> findScans(Kernel &kernel, const KernelModel &model, int64_t threads);

/// NotApplicable where something else of the arrays than their results is used afterwards. `known`: statements of all
/// scans and folds, and of the stores before them.
llvm::Error checkUses(const SharedScan &scan, Kernel &kernel, const KernelModel &model, int64_t threads,
                      const std::set<const Stmt *> &known);

/// What stands in the range's place: shuffles within warps, one exchange among them.
std::vector<StmtRef> scanByShuffles(const SharedScan &scan, const KernelModel &model, int64_t threads,
                                    std::set<std::string> &taken);

/// What becomes of one array.
struct SharedTree {
  std::string array;
  Type type;
  Fold fold;
};

/// Statements that fold arrays; nothing else is done by them, and they synchronize.
struct TreeRegion : StatementRange {
  std::vector<SharedTree> trees;
};

/// The regions of a kernel whose blocks have `threads` threads along x (at most 1024). Every fold is one of elements
/// 0 to threads - 1 into element 0, with no two threads at one element between barriers.
std::vector<TreeRegion> findTrees(Kernel &kernel, const KernelModel &model, int64_t threads);

} // namespace optiml

#endif
