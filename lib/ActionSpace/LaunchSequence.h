//===- LaunchSequence.h - launches and loops, for a block -------*- C++ -*-===//
#ifndef OPTIML_LIB_ACTIONSPACE_LAUNCHSEQUENCE_H
#define OPTIML_LIB_ACTIONSPACE_LAUNCHSEQUENCE_H

#include "optiml/Analysis/KernelState.h"
#include "optiml/Frontend/LaunchLoops.h"
#include "optiml/Transforms/FuseKernels.h"

namespace optiml {

/// `count` launches of the run from `first` on, with what their arguments have to be for them to become one. `kernels`:
/// what they launch. NotApplicable where an argument changes within a loop in a way that a kernel cannot follow.
/// `anyArgument`: a pointer may lead elsewhere in each turn, so that an array is not the same one in all of them.
llvm::Expected<std::vector<SequenceLaunch>> launchSequence(const LaunchRun &run, size_t first, size_t count,
                                                           const Program &host, const std::vector<KernelState> &kernels,
                                                           bool anyArgument);

} // namespace optiml

#endif
