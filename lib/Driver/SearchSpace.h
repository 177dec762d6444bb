//===- SearchSpace.h - what a search may rewrite ----------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_SEARCHSPACE_H
#define OPTIML_LIB_DRIVER_SEARCHSPACE_H

#include "Backend.h"
#include "optiml/Transforms/KernelSpace.h"

namespace optiml {

/// The kernels that the program launches and the flags ask for, with what is known of their launches. Names those that
/// cannot be read in notes on standard error; an error when none is left.
llvm::Expected<std::unique_ptr<KernelSpace>> createSearchSpace(const SearchTask &task, const Program &device,
                                                               const Workload &launched);

} // namespace optiml

#endif
