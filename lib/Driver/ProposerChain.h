//===- ProposerChain.h - expert, memory, language models --------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_PROPOSERCHAIN_H
#define OPTIML_LIB_DRIVER_PROPOSERCHAIN_H

#include "MemoryUse.h"
#include "Proposers.h"
#include "optiml/Model/ModelSession.h"
#include "optiml/Propose/ExpertPolicy.h"

namespace optiml {

/// Who proposes in one search: the expert policy, weighed by what earlier searches learnt, beside language models.
class ProposerChain {
public:
  /// With what the store remembers of kernels like these, and gathers what this search teaches. What is remembered is no
  /// part of a search's key: the same search again is answered from the store.
  llvm::Error addMemory(Store &store, KernelSpace &space, const Program &device, const Workload &workload,
                        MemoryOrigin origin);

  using Report = std::function<void(const nlohmann::json &)>;
  using Warn = std::function<void(const std::string &)>;
  /// With the models, whose texts may enter `space`, if the flags want it.
  void addModels(const SearchTask &task, const Program &device, const Backend &backend, KernelSpace &space, ModelSession &models,
                 Report report, Warn warn);

  Proposer &first();
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
  std::unique_ptr<ModelPolicy> asking;
};

} // namespace optiml

#endif
