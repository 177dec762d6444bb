//===- Features.h - what a kernel is like, without its names ----*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_FEATURES_H
#define OPTIML_ANALYSIS_FEATURES_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Core/Lesson.h"

namespace optiml {

/// What is known of a kernel's heaviest launch; zeros and absent entries are unknown.
struct LaunchFacts {
  std::array<int64_t, 3> grid{0, 0, 0}, block{0, 0, 0};
  std::map<std::string, int64_t> scalars; ///< integer arguments, by parameter
};

/// Loop depths, reductions, how neighbouring threads and iterations address memory, reuse, divergence, atomics, shared
/// memory, arithmetic intensity, types and sizes. Renaming and reformatting the kernel changes nothing.
KernelFeatures kernelFeatures(const Kernel &kernel, const LaunchFacts &launch);

} // namespace optiml

#endif
