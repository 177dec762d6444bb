//===- FuseKernels.h - kernels launched in a row, as one --------*- C++ -*-===//
//
// Kernels that are launched one after the other with the same geometry become one: each thread does what it did in the
// first, then what it did in the second. That is right when a thread needs nothing of the earlier kernels but what it
// did itself (docs/transforms/fuse-launches.md).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_FUSEKERNELS_H
#define OPTIML_TRANSFORMS_FUSEKERNELS_H

#include "optiml/Analysis/KernelState.h"
#include "optiml/Core/LaunchRewrites.h"
#include <optional>

namespace optiml {

struct KernelPart {
  const Kernel *tree = nullptr;
  /// Arguments of its launch as written, one for each parameter. Equal texts are taken for equal values, which has to
  /// be tested at run time.
  std::vector<std::string> arguments;
  /// Those that point to memory at which nothing looks after the launches: what is stored there need not be.
  std::set<std::string> dead;
  /// Those that point to memory into which nothing has been written before the launches.
  std::set<std::string> fresh;
};

struct FusedLaunches {
  FusedKernel kernel;
  KernelState state; ///< the fused kernel as an original
};

/// `parts` as one kernel called `name`. NotApplicable says why they have to stay apart. `strictFloat`: floating-point
/// results do not change at all.
llvm::Expected<FusedLaunches> fuseKernels(const std::vector<KernelPart> &parts, const std::string &name,
                                          bool strictFloat);

/// The same where the launches differ: one of the kernels has a thread for each row of a matrix (column, channel),
/// others a thread for each element, which becomes a loop of the row's thread. The fused kernel has fewer threads than
/// the parts.
llvm::Expected<FusedLaunches> fuseOverRows(const std::vector<KernelPart> &parts, const std::string &name,
                                           bool strictFloat);

/// The same where each thread has an element in all of them, but the elements lie along several axes in some and along
/// one in the others, or the launches have other blocks. The fused kernel has the threads of one of the parts.
llvm::Expected<FusedLaunches> fuseOverElements(const std::vector<KernelPart> &parts, const std::string &name,
                                               bool strictFloat);

/// An argument of a launch that may stand in a loop on the host.
struct LaunchArgument {
  ArgumentKind kind = ArgumentKind::Same;
  std::string text, other; ///< the values, as KernelPart::arguments
  unsigned loop = 0;       ///< AfterSwaps: behind which
};

/// A launch of a sequence in which loops on the host may stand, each with launches of its own.
struct SequenceLaunch {
  const Kernel *tree = nullptr;
  std::vector<LaunchArgument> arguments;
  std::set<std::string> dead, fresh;        ///< as those of KernelPart
  std::optional<unsigned> loop;             ///< it stands in this one; loops are counted from 0
  std::array<int64_t, 3> block = {0, 0, 0}; ///< its threads, where they are known; else zeros
  unsigned like = 0;                        ///< the first launch with the same geometry
  /// No turn of the loop leaves it out. The first launch of a loop must be such a one.
  bool always = true;
};

/// The launches as one kernel called `name`, in which a block does all that concerns a row of the arrays, and loops on
/// the host are loops of the block. NotApplicable says why that cannot be.
llvm::Expected<FusedLaunches> fuseInBlocks(const std::vector<SequenceLaunch> &launches, const std::string &name,
                                           bool strictFloat);

/// The launches as one kernel called `name`, whose threads do what those of each launch did, and loops on the host are
/// loops of a thread. The launches have the same geometry, or all but some that have it have an element for each
/// thread; that is tested when they have been made.
llvm::Expected<FusedLaunches> fuseInThreads(const std::vector<SequenceLaunch> &launches, const std::string &name,
                                            bool strictFloat);

} // namespace optiml

#endif
