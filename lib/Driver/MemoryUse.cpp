//===- MemoryUse.cpp - what a search takes from memory and leaves ---------===//
#include "MemoryUse.h"
#include "optiml/Analysis/Features.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <map>
#include <set>

using namespace optiml;
using llvm::StringRef;

/// With the preparations on every kernel that they apply to: kernels that do the same become alike.
static SearchState prepared(KernelSpace &space, SearchState state) {
  for (StringRef transform : preparations) {
    std::set<std::string> done;
    for (const ActionTemplate &action : std::vector<ActionTemplate>(state.legal.of(transform.str()))) {
      if (action.values.empty() || !done.insert(siteKernel(action.site).str()).second)
        continue;
      if (auto next = space.apply(state, {action.transform, action.site, action.values.front()}))
        state = std::move(*next);
      else
        consumeError(next.takeError());
    }
  }
  return state;
}

KernelIdentities optiml::identifyKernels(KernelSpace &space, const SearchState &original, const Program &program,
                                         const Workload &workload) {
  KernelIdentities result;
  SearchState root = prepared(space, original);
  for (const auto &[name, state] : static_cast<const TreeVariant &>(*original.variant).kernels)
    result[name].names = allNames(*state.tree);
  for (const auto &[name, state] : static_cast<const TreeVariant &>(*root.variant).kernels) {
    if (!state.tree)
      continue;
    KernelIdentity &identity = result[name];
    identity.features = kernelFeatures(*state.tree, {state.hints.grid, state.hints.block, state.hints.scalars});
    identity.names.merge(allNames(*state.tree));
  }
  for (const KernelDecl &decl : program.kernels())
    if (auto it = result.find(decl.name); it != result.end())
      it->second.launches = launchWeights(workload, decl.symbol);
  // Which rewrites are legal says much about a kernel; at how many places less: loops and parameters speak for
  // themselves.
  std::map<std::string, std::set<std::string>> legal;
  for (const ActionTemplate &action : root.legal)
    legal[siteKernel(action.site).str()].insert("legal " + action.transform);
  for (auto &[name, identity] : result) {
    std::vector<std::string> &tokens = identity.features.tokens;
    tokens.insert(tokens.end(), legal[name].begin(), legal[name].end());
    std::sort(tokens.begin(), tokens.end());
  }
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
