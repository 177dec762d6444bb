//===- History.h - what a search has tried so far ---------------*- C++ -*-===//
#ifndef OPTIML_PROPOSE_HISTORY_H
#define OPTIML_PROPOSE_HISTORY_H

#include "optiml/Propose/Prompt.h"
#include <set>

namespace optiml {

/// Recipes and their outcomes, ranked: the fastest first, then what failed, with the reason.
class History {
public:
  History() = default;
  History(const History &) = delete; // its states point into it
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
  /// The original and the fastest, with their measurements and without legal actions; null before they are known.
  const SearchState *rootState() const { return original.state.variant ? &original.state : nullptr; }
  const SearchState *bestState() const { return fastest.state.variant ? &fastest.state : nullptr; }

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
  struct Kept {
    SearchState state;
    Measurement measurement;
    void keep(const SearchState &from, const Measurement &m) {
      measurement = m;
      state = {from.variant, from.key, {}, &measurement};
    }
  };
  Kept original, fastest;
};

} // namespace optiml

#endif
