//===- ProposerChain.cpp - expert, memory, language models ----------------===//
#include "ProposerChain.h"
#include "optiml/Propose/LessonText.h"
#include "optiml/Support/Error.h"

using namespace optiml;

llvm::Error ProposerChain::addMemory(Store &from, KernelSpace &space, const Program &device, const Workload &workload,
                                     MemoryOrigin here) {
  auto root = space.root();
  if (!root)
    return root.takeError();
  store = &from;
  origin = std::move(here);
  kernels = identifyKernels(space, *root, device, workload);
  auto memories = store->memories();
  if (!memories)
    return memories.takeError();
  learnt = std::make_unique<LearntMemory>(std::move(*memories), kernels, origin);
  withMemory = std::make_unique<MemoryPolicy>(expert, *learnt);
  return llvm::Error::success();
}

void ProposerChain::addModels(const SearchTask &task, const Program &device, const Backend &backend, KernelSpace &space,
                              ModelSession &session, Report report, Warn warn) {
  if (session.models().empty() || !modelsPropose(task.flags))
    return;
  models = &session;
  LanguageModelSettings settings = modelPolicySettings(task.flags);
  if (settings.kernels)
    acceptKernelTexts(space, texts, task, device, backend);
  SearchFacts facts = searchFacts(task, device, space, backend);
  if (learnt)
    facts.lessons = [this](const std::string &kernel, const std::string &bottleneck) {
      return lessonText(*learnt, kernel, bottleneck, 8, 3000);
    };
  asking = std::make_unique<LanguageModelPolicy>(first(), session.models().vec(), std::move(facts), settings,
                                                 std::move(report), std::move(warn), texts);
}

Proposer &ProposerChain::first() {
  if (asking)
    return *asking;
  if (withMemory)
    return *withMemory;
  return expert;
}

nlohmann::json ProposerChain::memoryMatches() const { return learnt ? describeMatches(*learnt) : nlohmann::json(); }

void ProposerChain::addTo(nlohmann::json &summary, const Recipe &best) const {
  if (!asking)
    return;
  summary["proposer"] = asking->summary();
  summary["models"] = models->summary();
  summary["texts"] = textsOf(best, *texts);
}

llvm::Error ProposerChain::remember(const SearchResult &result, bool trusted) {
  return kernels.empty() ? llvm::Error::success() : rememberSearch(*store, kernels, origin, lessons, result, trusted);
}
