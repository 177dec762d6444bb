//===- IterationWrites.h - what a loop's iterations write -------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_ITERATIONWRITES_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_ITERATIONWRITES_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// What a pointer parameter leads to, or a variable of the file: the same memory for all threads.
bool isSharedByAll(const KernelModel &model, const Access &access);

/// That every iteration writes other elements than the others access, but for the private arrays and variables of which
/// something else is `explained`. What it needs is required of `state`; NotApplicable where it cannot be told.
llvm::Error requireOwnWrites(KernelState &state, const KernelModel &model, const CountedLoop &loop,
                             const std::set<std::string> &explained);

/// That the loop's head writes no array, and its body none that the head reads. Conditions are required of `state`;
/// NotApplicable where they cannot be told apart.
llvm::Error requireFixedHead(KernelState &state, const KernelModel &model, const Stmt &loop,
                             const std::set<std::string> &headReads, const std::set<std::string> &headWrites,
                             const std::set<std::string> &bodyWrites);

} // namespace optiml

#endif
