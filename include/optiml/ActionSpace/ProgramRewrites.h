//===- ProgramRewrites.h - launches that are replaced -----------*- C++ -*-===//
//
// Loops of launches that are one algorithm, and launches that follow one another and become one. Found in the user's
// program; Emit writes them into it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ACTIONSPACE_PROGRAMREWRITES_H
#define OPTIML_ACTIONSPACE_PROGRAMREWRITES_H

#include "optiml/Analysis/KernelState.h"
#include "optiml/Emit/Emit.h"
#include "optiml/Frontend/LaunchLoops.h"

namespace optiml {

/// The loops of launches in a program that can be replaced as a whole, and of the others why not.
struct FoundLoops {
  std::vector<LoopRewrite> rewrites;
  std::vector<std::string> notes; ///< "line 12: the loop of launches of step stays: …"
};
/// `device` and `host` are two views of one text. `strictFloat`: sums of floating-point numbers keep their order.
FoundLoops findLoopRewrites(const Program &device, const Program &host, bool strictFloat);

/// Launches that could become one, with all that is known of the kernels.
struct FusionCandidate {
  Fusion fusion;
  KernelState fused;              ///< the new kernel before any rewrite
  std::vector<KernelState> parts; ///< ... and the originals
  bool gainsByThreads = false;    ///< an original would have more to gain from more threads, where it has few
};

/// What Emit writes of them.
std::vector<Fusion> fusionsOf(llvm::ArrayRef<FusionCandidate> candidates);

struct FoundFusions {
  std::vector<FusionCandidate> fusions;
  std::vector<std::string> notes; ///< "line 12: …": why launches that follow one another stay apart
};
/// Whether two launches have the same grid and block.
using SameGeometry = std::function<bool(const LaunchSite &, const LaunchSite &)>;
/// As far as their text tells.
bool isSpelledAlike(const LaunchSite &a, const LaunchSite &b);
/// `device` and `host` are two views of one text. `wanted` tells which kernels may be fused. `overRows`: also where a
/// kernel has to get fewer threads for it (fuseOverRows), or launches differ in their geometry.
FoundFusions findFusions(const Program &device, const Program &host, bool strictFloat,
                         const std::function<bool(const std::string &kernel)> &wanted, const SameGeometry &alike,
                         bool overRows);

} // namespace optiml

#endif
