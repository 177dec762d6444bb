//===- FuseText.h - CUDA for fused launches ---------------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_FUSETEXT_H
#define OPTIML_LIB_DRIVER_FUSETEXT_H

#include "optiml/Transforms/FuseKernels.h"

namespace optiml {

/// What is written beside kernels that are fused.
struct FuseTextNames {
  struct Part {
    std::string callee;             ///< the original, as it is called beside its definition
    std::string kernel;             ///< ... and for people
    std::string parameters;         ///< the original's, as C++ text
    std::vector<std::string> names; ///< of these
  };
  std::string name;   ///< the fused kernel
  std::string helper; ///< class that counts paths (Emit.cpp)
  std::vector<Part> parts;
  std::string launchType(size_t part) const { return name + "_launch" + std::to_string(part); }
  std::string launcher() const { return name + "_launch"; }
};

/// The fused kernel, a class for the launch of each part, and the function that takes an object of each and launches the
/// fused kernel, or the parts where that is not right.
std::string fuseText(const FusedKernel &fused, const FuseTextNames &names);

} // namespace optiml

#endif
