//===- ProposerChain.h - who proposes in a search ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_PROPOSERCHAIN_H
#define OPTIML_LIB_DRIVER_PROPOSERCHAIN_H

#include "Backend.h"
#include "MemoryUse.h"
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/LanguageModels/ModelSession.h"
#include "optiml/Propose/ExpertPolicy.h"
#include "optiml/Propose/LanguageModelPolicy.h"

namespace optiml {

/// Who proposes in one search: the expert policy, weighed by what earlier searches learnt, beside language models.
class ProposerChain {
public:
  /// With what the store remembers of kernels like these, and gathers what this search teaches. What is remembered is
  /// no part of a search's key: the same search again is answered from the store.
  llvm::Error addMemory(Store &store, KernelSpace &space, const Program &device, const Workload &workload,
                        MemoryOrigin origin);

  using Report = std::function<void(const nlohmann::json &)>;
  using Warn = std::function<void(const std::string &)>;
  /// With the models, whose texts may enter `space`, if the flags want it.
  void addModels(const SearchTask &task, const Program &device, const Backend &backend, KernelSpace &space,
                 ModelSession &models, Report report, Warn warn);

  Proposer &first();
  /// The search has ended.
  void stopAsking() {
    if (asking)
      asking->stopAsking();
  }
  /// What earlier searches say of recipes; null without memory.
  const Outlook *outlook() const { return withMemory.get(); }
  LessonRecorder &recorder() { return lessons; }
  /// Of memory, for the trajectory; null: none is used.
  nlohmann::json memoryMatches() const;
  /// What models did, if any were asked.
  void addTo(nlohmann::json &summary, const Recipe &best) const;
  /// Learns from the search, if there is memory.
  llvm::Error remember(const SearchResult &result, bool trusted);

private:
  ExpertPolicy expert;
  LessonRecorder lessons;
  Store *store = nullptr;
  MemoryOrigin origin;
  KernelIdentities kernels;
  std::unique_ptr<LearntMemory> learnt;
  std::unique_ptr<MemoryPolicy> withMemory;
  ModelSession *models = nullptr;
  std::shared_ptr<KernelTexts> texts = std::make_shared<KernelTexts>();
  std::unique_ptr<LanguageModelPolicy> asking;
};

// Puts together what language models are told of a search, and the proposer that asks them.

/// Kernels by falling share of the threads that run them, their launches, the GPU, the rules of arithmetic.
SearchFacts searchFacts(const SearchTask &task, const Program &device, const KernelSpace &space,
                        const Backend &backend);

/// True (non-zero) for launches like these: the same geometry, and integer arguments that lie between those of the
/// launches with that geometry. Of more than 32 geometries, those launched most often.
std::string exercisedCondition(const Kernel &kernel, const std::vector<const LaunchImage *> &launches);

/// What the flags say of the proposer.
LanguageModelSettings modelPolicySettings(const OwnFlags &flags);

/// Whether models propose in this search.
bool modelsPropose(const OwnFlags &flags);

/// Lets text from outside enter the space: with a parser for it and, for each kernel, the launches it may run on.
void acceptKernelTexts(KernelSpace &space, std::shared_ptr<const KernelTexts> texts, const SearchTask &task,
                       const Program &device, const Backend &backend);

/// The texts that a recipe needs, by name.
nlohmann::json textsOf(const Recipe &recipe, const KernelTexts &texts);

} // namespace optiml

#endif
