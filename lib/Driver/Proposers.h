//===- Proposers.h - who proposes in a search -------------------*- C++ -*-===//
//
// Puts together what language models are told of a search, and the proposer that asks them.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_PROPOSERS_H
#define OPTIML_LIB_DRIVER_PROPOSERS_H

#include "Backend.h"
#include "optiml/Propose/ModelPolicy.h"
#include "optiml/Transforms/KernelSpace.h"

namespace optiml {

/// Kernels by falling share of the threads that run them, their launches, the GPU, the rules of arithmetic.
SearchFacts searchFacts(const SearchTask &task, const Program &device, const KernelSpace &space, const Backend &backend);

/// True (non-zero) for launches like these: the same geometry, and integer arguments that lie between those of the launches
/// with that geometry. Of more than 32 geometries, those launched most often.
std::string exercisedCondition(const Kernel &kernel, const std::vector<const LaunchImage *> &launches);

/// What the flags say of the proposer.
ModelPolicySettings modelPolicySettings(const OwnFlags &flags);

/// Whether models propose in this search.
bool modelsPropose(const OwnFlags &flags);

/// Lets text from outside enter the space: with a parser for it and, for each kernel, the launches it may run on.
void acceptKernelTexts(KernelSpace &space, std::shared_ptr<const KernelTexts> texts, const SearchTask &task, const Program &device,
                       const Backend &backend);

/// The texts that a recipe needs, by name.
nlohmann::json textsOf(const Recipe &recipe, const KernelTexts &texts);

} // namespace optiml

#endif
