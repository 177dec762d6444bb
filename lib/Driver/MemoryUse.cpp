//===- MemoryUse.cpp - what a search takes from memory and leaves ---------===//
#include "MemoryUse.h"
#include "optiml/Analysis/Features.h"
#include "optiml/Transforms/KernelSpace.h"
#include "llvm/Support/Path.h"
#include <algorithm>

using namespace optiml;

KernelIdentities optiml::identifyKernels(const SearchState &root, const Program &program, const Workload &workload) {
  KernelIdentities result;
  for (const auto &[name, state] : static_cast<const TreeVariant &>(*root.variant).kernels) {
    KernelIdentity &identity = result[name];
    identity.features = kernelFeatures(*state.tree, {state.hints.grid, state.hints.block, state.hints.scalars});
    identity.names = allNames(*state.tree);
  }
  for (const KernelDecl &decl : program.kernels())
    if (auto it = result.find(decl.name); it != result.end())
      for (size_t i = 0; i < workload.launches.size(); ++i)
        if (workload.launches[i].kernel == decl.symbol)
          it->second.launches[i] = workload.launches[i].weight;
  // Which rewrites are legal says much about a kernel.
  for (const ActionTemplate &legal : root.legal) {
    std::string kernel = siteKernel(legal.site).str();
    auto it = result.find(kernel);
    if (it != result.end())
      it->second.features.tokens.push_back("legal " + legal.transform + " " +
                                           siteRole(legal.site, kernel, it->second.names));
  }
  for (auto &[name, identity] : result)
    std::sort(identity.features.tokens.begin(), identity.features.tokens.end());
  return result;
}

llvm::Error optiml::rememberSearch(Store &store, const KernelIdentities &kernels, const MemoryOrigin &origin,
                                   const LessonRecorder &recorder, const SearchResult &result, bool trusted) {
  std::vector<TriedRecipe> winners;
  if (trusted) {
    if (result.improved)
      winners.push_back({result.best.recipe, result.best.measurement});
    for (const Candidate &candidate : result.top)
      winners.push_back({candidate.recipe, candidate.measurement});
  }
  for (const KernelMemory &memory : learn(kernels, origin, recorder.all(), winners))
    if (llvm::Error error = store.addMemory(memory))
      return error;
  return llvm::Error::success();
}

nlohmann::json optiml::describeMatches(const LearntMemory &memory) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto &[kernel, identity] : memory.identities()) {
    nlohmann::json matches = nlohmann::json::array();
    for (const LearntMemory::Match &match : memory.similar(kernel))
      matches.push_back({{"similarity", match.similarity},
                         {"source", match.memory->source},
                         {"lessons", match.memory->lessons.size()},
                         {"lines", match.memory->lines.size()}});
    result[kernel] = matches;
  }
  return result;
}

std::string optiml::storeFolderOf(const OwnFlags &flags) {
  if (!flags.store.empty())
    return flags.store;
  return llvm::sys::path::parent_path(Store::defaultPath()).str();
}
