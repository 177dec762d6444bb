//===- LaunchIdioms.h - what a sequence of launches computes ----*- C++ -*-===//
//
// Kernels that are one step of a well-known algorithm, launched again and again by a loop on the host. What is
// recognized here is what a single launch does, from the cases of its threads; whether a sequence of launches is the
// whole algorithm is asked at run time, of the arguments of the launches that the loop really makes
// (docs/transforms/launch-loop.md).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_LAUNCHIDIOMS_H
#define OPTIML_TRANSFORMS_LAUNCHIDIOMS_H

#include "optiml/Transforms/TimeSteps.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// The scan or sort that the kernel is a step of. NotApplicable tells why it is none that is known.
llvm::Expected<LaunchIdiom> recognizeLaunchIdiom(const Kernel &kernel);
/// The same for any idiom, `state` being the kernel before any rewrite.
llvm::Expected<LaunchIdiom> recognizeLaunchIdiom(const KernelState &state);

} // namespace optiml

#endif
