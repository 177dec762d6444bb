//===- History.cpp - what a search has tried so far -----------------------===//
#include "optiml/Propose/History.h"
#include "optiml/Propose/Answers.h"
#include <algorithm>

using namespace optiml;

/// Of each kind, what a prompt shows at most.
static constexpr size_t shownBest = 8, shownFailures = 8, shownRefusals = 6, keptRefusals = 64;

void History::observe(const SearchState &state, const Measurement &measurement) {
  if (root.empty() && state.variant->recipe.empty())
    root = state.key;
  if (state.variant->recipe.empty())
    original.keep(state, measurement);
  entries.push_back({state.variant->recipe, measurement});
  bool confirmed = measurement.correct() && measurement.guardrails.empty() && measurement.time.seconds > 0;
  if (confirmed && (bestIndex < 0 || measurement.time.seconds < entries[size_t(bestIndex)].measurement.time.seconds)) {
    bestIndex = long(entries.size()) - 1;
    key = state.key;
    fastest.keep(state, measurement);
  }
}

void History::refused(const Recipe &recipe, const std::string &why) {
  std::string text = recipeText(recipe);
  if (!refusedRecipes.insert(text).second)
    return;
  refusals.push_back({std::move(text), why});
  if (refusals.size() > keptRefusals)
    refusals.erase(refusals.begin());
}

static std::string shown(const Recipe &recipe) { return recipe.empty() ? "the original" : recipeText(recipe); }

void History::addTo(Prompt &prompt) const {
  if (entries.empty() && refusals.empty())
    return;
  prompt.add(0, "# What was tried\n");
  if (const Entry *fastest = best())
    prompt.add(1, "Fastest so far: " + shown(fastest->recipe) + " (" + measurementLine(fastest->measurement) + ")\n");
  std::vector<const Entry *> ranked, failed;
  for (const Entry &entry : entries)
    (entry.measurement.isUsable() ? ranked : failed).push_back(&entry);
  std::stable_sort(ranked.begin(), ranked.end(), [](const Entry *a, const Entry *b) {
    return a->measurement.time.seconds < b->measurement.time.seconds;
  });
  for (size_t i = 0; i < std::min(shownBest, ranked.size()); ++i)
    prompt.add(3, "- " + shown(ranked[i]->recipe) + ": " + measurementLine(ranked[i]->measurement) +
                      (ranked[i]->measurement.verdict == Verdict::Predicted ? " (predicted only)" : "") + "\n");
  for (size_t i = failed.size() - std::min(shownFailures, failed.size()); i < failed.size(); ++i)
    prompt.add(3, "- failed (" + std::string(verdictName(failed[i]->measurement.verdict)) + "): " +
                      shown(failed[i]->recipe) + ": " + oneLine(withoutFolders(failed[i]->measurement.why)) + "\n");
  for (size_t i = refusals.size() - std::min(shownRefusals, refusals.size()); i < refusals.size(); ++i)
    prompt.add(4, "- does not apply: " + oneLine(refusals[i].recipe) + ": " + oneLine(withoutFolders(refusals[i].why)) +
                      "\n");
}
