//===- Learn.h - from a finished search to what it teaches ------*- C++ -*-===//
#ifndef OPTIML_PROPOSE_LEARN_H
#define OPTIML_PROPOSE_LEARN_H

#include "optiml/Core/Lesson.h"

namespace optiml {

/// A kernel of the program that is searched.
struct KernelIdentity {
  KernelFeatures features;
  std::set<std::string> names; ///< all that occur in its source; none of them enters a memory
  /// Which of the workload's launches are its, and how much each weighs; none: not known.
  std::map<size_t, double> launches = {};
};
using KernelIdentities = std::map<std::string, KernelIdentity>; ///< by the kernel's name in sites

/// What the kernel alone takes; where its launches are not known, what all do.
double kernelSeconds(const KernelIdentity &kernel, const Timing &time);

/// Where lessons come from, or are wanted.
struct MemoryOrigin {
  std::string source; ///< hash of what is searched
  std::string gpu, backend;
};

struct TriedRecipe {
  Recipe recipe; ///< empty: the original
  Measurement measurement;
};

/// What a search teaches about each kernel: of every action in `tried` the gain over the longest shorter recipe that
/// was evaluated too (shared by several actions where more than one was added), and the `winners`, fastest first, as
/// opening lines. Empty when the original is not among `tried`.
std::vector<KernelMemory> learn(const KernelIdentities &kernels, const MemoryOrigin &origin,
                                const std::vector<TriedRecipe> &tried, const std::vector<TriedRecipe> &winners);

} // namespace optiml

#endif
