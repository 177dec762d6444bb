//===- Read.h - from Clang's AST to a kernel tree ---------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_READ_H
#define OPTIML_ANALYSIS_READ_H

#include "optiml/Analysis/Tree.h"
#include "optiml/Frontend/Program.h"

namespace optiml {

/// The kernel as a tree. `program` must be a device view. A template instantiation is read with its arguments in place.
/// Errors are NotApplicable, with the line of the construct that the tree cannot hold.
llvm::Expected<std::shared_ptr<Kernel>> readKernel(const Program &program, const KernelDecl &kernel);

} // namespace optiml

#endif
