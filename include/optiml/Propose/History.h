//===- History.h - what a search has tried so far ---------------*- C++ -*-===//
#ifndef OPTIML_PROPOSE_HISTORY_H
#define OPTIML_PROPOSE_HISTORY_H

#include "optiml/Propose/Prompt.h"
#include <map>
#include <set>

namespace optiml {

/// Recipes and their outcomes, ranked: the fastest first, then what failed, with the reason.
class History {
public:
  struct Entry {
    Recipe recipe;
    Measurement measurement;
  };
  void observe(const SearchState &state, const Measurement &measurement);
  void refused(const Recipe &recipe, const std::string &why);

  /// The fastest that is correct and breaks no guardrail (the baseline too), or null.
  const Entry *best() const { return bestIndex < 0 ? nullptr : &entries[size_t(bestIndex)]; }
  const std::string &bestKey() const { return key; }
  /// The key of the original; empty before its evaluation.
  const std::string &rootKey() const { return root; }
  size_t evaluations() const { return entries.size(); }

  /// Fastest so far, the next best, and the latest failures.
  void addTo(Prompt &prompt) const;

private:
  struct Refusal {
    std::string recipe, why;
  };
  std::vector<Entry> entries; ///< in order; failures have a verdict that says so
  std::vector<Refusal> refusals;
  std::set<std::string> refusedRecipes;
  long bestIndex = -1;
  std::string key, root;
};

} // namespace optiml

#endif
