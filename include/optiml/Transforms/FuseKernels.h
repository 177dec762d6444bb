//===- FuseKernels.h - kernels launched in a row, as one --------*- C++ -*-===//
//
// Kernels that are launched one after the other with the same geometry become one: each thread does what it did in the
// first, then what it did in the second. That is right when a thread needs nothing of the earlier kernels but what it did
// itself (docs/transforms.md).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_FUSEKERNELS_H
#define OPTIML_TRANSFORMS_FUSEKERNELS_H

#include "optiml/Transforms/Transform.h"

namespace optiml {

struct KernelPart {
  const Kernel *tree = nullptr;
  /// Arguments of its launch as written, one for each parameter. Equal texts are taken for equal values, which has to be
  /// tested at run time.
  std::vector<std::string> arguments;
};

struct FusedKernel {
  /// The fused kernel as an original, with the conditions on its own launch, which has the geometry of part `geometry`.
  KernelState state;
  unsigned geometry = 0;
  /// Empty: the parts' launches must be alike. Else the conditions on the launch of each, over its own geometry and the
  /// fused kernel's parameters.
  std::vector<std::vector<Condition>> launches;
  /// Of each part: which of the fused kernel's parameters each of its own is. One that stands for several is right only
  /// where their arguments are equal.
  std::vector<std::vector<std::string>> names;
  /// By the fused kernel's parameters: the part and its parameter that gives the value (a pointer that may be written
  /// through where it is).
  std::map<std::string, std::pair<unsigned, unsigned>> sources;
};

/// `parts` as one kernel called `name`. NotApplicable says why they have to stay apart. `strictFloat`: floating-point
/// results do not change at all.
llvm::Expected<FusedKernel> fuseKernels(const std::vector<KernelPart> &parts, const std::string &name, bool strictFloat);

/// The same where the launches differ: one of the kernels has a thread for each row of a matrix (column, channel), others a
/// thread for each element, which becomes a loop of the row's thread. The fused kernel has fewer threads than the parts.
llvm::Expected<FusedKernel> fuseOverRows(const std::vector<KernelPart> &parts, const std::string &name, bool strictFloat);

} // namespace optiml

#endif
