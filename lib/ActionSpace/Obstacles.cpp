//===- Obstacles.cpp - what keeps transforms from a kernel ----------------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/ActionSpace/Registry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

/// A transform applies that does more than tune; where none does, `refusals` gets why not.
static bool offersStructure(KernelState state, std::vector<Refusal> &refusals) {
  state.refusals = std::make_shared<std::vector<Refusal>>();
  for (const Transform *transform : allTransforms())
    if (!transform->onlyTunes() && !transform->sites(state).empty())
      return true;
  llvm::append_range(refusals, *state.refusals);
  return false;
}

/// The reasons that most transforms give, each with these.
static std::string mainReasons(const std::vector<Refusal> &refusals) {
  constexpr size_t most = 3;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Refusal &refusal : refusals) {
    if (refusal.reason == shapeIsFixed || refusal.reason == shapeIsOpen)
      continue;
    auto at = llvm::find_if(reasons, [&](const auto &known) { return known.first == refusal.reason; });
    if (at == reasons.end())
      at = reasons.insert(at, {refusal.reason, {}});
    if (!llvm::is_contained(at->second, refusal.transform))
      at->second.push_back(refusal.transform);
  }
  llvm::stable_sort(reasons, [](const auto &a, const auto &b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (auto &[reason, transforms] : llvm::ArrayRef(reasons).take_front(most)) {
    const size_t more = transforms.size() > most ? transforms.size() - most : 0;
    text += (text.empty() ? "" : "; ") + reason + " (" + llvm::join(llvm::ArrayRef(transforms).drop_back(more), ", ") +
            (more ? " and " + std::to_string(more) + " more)" : ")");
  }
  return text.empty() ? "it has no loop, no array in shared memory, and nothing to share" : text;
}

std::string KernelSpace::obstacles(const std::string &kernel) const {
  const KernelState *state = this->kernel(kernel);
  std::vector<Refusal> refusals;
  if (!state || offersStructure(*state, refusals))
    return "";
  if (auto fixed = withFixedBlock(*state); fixed && offersStructure(*fixed, refusals))
    return "";
  return mainReasons(refusals);
}
