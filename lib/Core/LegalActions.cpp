//===- LegalActions.cpp - what may be done to a variant -------------------===//
#include "optiml/Core/LegalActions.h"
#include <algorithm>
#include <map>
#include <mutex>

using namespace optiml;

/// A transform's actions on a kernel.
struct LegalActions::Part {
  std::string kernel, transform;
  Find find; ///< empty once it was called
  std::mutex mutex;
  std::vector<ActionTemplate> found;

  const std::vector<ActionTemplate> &actions() {
    std::lock_guard lock(mutex);
    if (find)
      found = std::exchange(find, nullptr)();
    return found;
  }
};

struct LegalActions::Shared {
  std::vector<std::shared_ptr<Part>> parts;
  std::mutex mutex; ///< of what follows
  bool isWhole = false;
  std::vector<ActionTemplate> whole;
  std::map<std::string, std::vector<ActionTemplate>> ofTransforms;
};

LegalActions::LegalActions(std::vector<ActionTemplate> actions) {
  for (ActionTemplate &action : actions)
    push_back(std::move(action));
}

LegalActions::Shared &LegalActions::own() {
  // What was found stays with those that have it; a list that is built up is nobody else's yet.
  auto mine = std::make_shared<Shared>();
  if (shared && shared.use_count() == 1)
    mine->parts = std::move(shared->parts);
  else if (shared)
    mine->parts = shared->parts;
  shared = std::move(mine);
  return *shared;
}

void LegalActions::defer(std::string kernel, std::string transform, Find find) {
  auto part = std::make_shared<Part>();
  part->kernel = std::move(kernel);
  part->transform = std::move(transform);
  part->find = std::move(find);
  own().parts.push_back(std::move(part));
}

void LegalActions::shareFrom(const LegalActions &other, const std::string &kernel) {
  Shared &mine = own();
  if (other.shared)
    for (const std::shared_ptr<Part> &part : other.shared->parts)
      if (part->kernel == kernel)
        mine.parts.push_back(part);
}

void LegalActions::push_back(ActionTemplate action) {
  auto part = std::make_shared<Part>();
  part->transform = action.transform;
  part->found.push_back(std::move(action));
  own().parts.push_back(std::move(part));
}

static const std::vector<ActionTemplate> nothing;

const std::vector<ActionTemplate> &LegalActions::of(const std::string &transform) const {
  if (!shared)
    return nothing;
  std::lock_guard lock(shared->mutex);
  auto [known, isNew] = shared->ofTransforms.try_emplace(transform);
  if (isNew)
    for (const std::shared_ptr<Part> &part : shared->parts)
      if (part->transform == transform)
        known->second.insert(known->second.end(), part->actions().begin(), part->actions().end());
  return known->second;
}

bool LegalActions::offers(const Action &action) const {
  const std::vector<ActionTemplate> &all = of(action.transform);
  return std::any_of(all.begin(), all.end(), [&](const ActionTemplate &offered) {
    return offered.site == action.site &&
           std::find(offered.values.begin(), offered.values.end(), action.params) != offered.values.end();
  });
}

const std::vector<ActionTemplate> &LegalActions::all() const {
  if (!shared)
    return nothing;
  std::lock_guard lock(shared->mutex);
  if (!std::exchange(shared->isWhole, true))
    for (const std::shared_ptr<Part> &part : shared->parts)
      shared->whole.insert(shared->whole.end(), part->actions().begin(), part->actions().end());
  return shared->whole;
}

size_t LegalActions::parts() const { return shared ? shared->parts.size() : 0; }

void LegalActions::find(size_t part) const { shared->parts[part]->actions(); }
