//===- Recorded.cpp - searching a table of measured variants --------------===//
#include "optiml/Search/Recorded.h"
#include "optiml/Support/Error.h"
#include <algorithm>

using namespace optiml;

void RecordedSpace::add(const RecordedVariant &variant) {
  Node *node = &nodes[""];
  for (const Action &action : variant.recipe) {
    if (std::find(node->actions.begin(), node->actions.end(), action) == node->actions.end())
      node->actions.push_back(action);
    Recipe longer = node->recipe;
    longer.push_back(action);
    std::string text = recipeText(longer);
    node = &nodes[text];
    if (node->recipe.empty()) {
      node->recipe = std::move(longer);
      node->key = "on the way to " + text;
    }
  }
  if (node->measurement && (node->verified || !variant.verified))
    return;
  recorded += !node->measurement;
  node->key = variant.key;
  node->measurement = variant.measurement;
  node->verified = variant.verified;
}

llvm::Expected<std::unique_ptr<RecordedSpace>> RecordedSpace::create(const std::vector<RecordedVariant> &variants) {
  std::unique_ptr<RecordedSpace> space(new RecordedSpace);
  for (const RecordedVariant &variant : variants)
    space->add(variant);
  auto original = space->nodes.find("");
  if (original == space->nodes.end() || !original->second.measurement || !original->second.measurement->isUsable())
    return makeError("the record holds no evaluation of the original");
  double baseline = original->second.measurement->time.seconds;
  for (const auto &[text, node] : space->nodes)
    if (node.measurement && node.measurement->isUsable() && node.measurement->guardrails.empty())
      space->best = std::max(space->best, baseline / node.measurement->time.seconds);
  return space;
}

SearchState RecordedSpace::stateOf(const Node &node) const {
  SearchState state;
  auto variant = std::make_shared<Variant>();
  variant->recipe = node.recipe;
  state.variant = variant;
  state.key = node.key;
  std::vector<ActionTemplate> legal;
  for (const Action &action : node.actions) {
    auto known = std::find_if(legal.begin(), legal.end(), [&](const ActionTemplate &t) {
      return t.transform == action.transform && t.site == action.site;
    });
    if (known == legal.end())
      legal.push_back({action.transform, action.site, {action.params}});
    else
      known->values.push_back(action.params);
  }
  state.legal = std::move(legal);
  return state;
}

llvm::Expected<SearchState> RecordedSpace::apply(const SearchState &state, const Action &action) {
  Recipe recipe = state.variant->recipe;
  recipe.push_back(action);
  auto it = nodes.find(recipeText(recipe));
  if (it == nodes.end())
    return notApplicable("{0} is not in the record", action.str());
  return stateOf(it->second);
}

Measurement RecordedSpace::evaluate(const Variant &variant, Fidelity fidelity) {
  Recipe recipe = variant.recipe;
  const Node *node = &nodes.at(recipeText(recipe));
  while (!node->measurement || (node->recipe.size() < variant.recipe.size() && !node->measurement->isUsable())) {
    recipe.pop_back(); // the original ends this
    node = &nodes.at(recipeText(recipe));
  }
  Measurement m = *node->measurement;
  if (m.isUsable())
    m.verdict = fidelity == Fidelity::Model ? Verdict::Predicted : Verdict::Correct;
  return m;
}
