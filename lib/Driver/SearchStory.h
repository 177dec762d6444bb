//===- SearchStory.h - what a report tells beside evaluations ---*- C++ -*-===//
//
// The trajectory's events "search" and "winner" (docs/formats.md): the program and the GPU that a search began with,
// and its best recipe, step by step.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_SEARCHSTORY_H
#define OPTIML_LIB_DRIVER_SEARCHSTORY_H

#include "Backend.h"
#include "optiml/ActionSpace/KernelSpace.h"

namespace optiml {

/// Kernels with their sources and launches, those that are left as they are, and the GPU's peaks.
nlohmann::json storyOf(const SearchTask &task, const Program &device, const KernelSpace &space, const Backend &backend);

/// What one would expect and what does not apply: for each kernel, transforms that the opening book's lines need, and
/// that `taken` does not use, and that neither the original nor the kernel with a fixed block offers, with the reason.
nlohmann::json missedIn(KernelSpace &space, const Recipe &taken);

/// The recipe, one step after the other: the kernel before and after, its conditions, and the key of the variant.
/// `measure`, where there is one, is asked about the variants on the way.
nlohmann::json stepsOf(KernelSpace &space, const Recipe &recipe,
                       const std::function<Measurement(const Variant &)> &measure);

} // namespace optiml

#endif
