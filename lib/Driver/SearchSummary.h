//===- SearchSummary.h - what a search tells --------------------*- C++ -*-===//
//
// The summary is the JSON object that the store keeps, that ends the trajectory, and that is printed for people.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_SEARCHSUMMARY_H
#define OPTIML_LIB_DRIVER_SEARCHSUMMARY_H

#include "LoopTrial.h"
#include "optiml/Report/Limits.h"

namespace optiml {

/// What a finished search leaves behind, also in the store.
struct SearchOutcome {
  bool improved = false;
  std::string emitted;    ///< the new source; empty when the original stays
  std::string executable; ///< of it, but for comments, where it was built (buildProgram()); may be empty
  nlohmann::json summary;
  Recipe recipe;
  bool cancelled = false; ///< by a signal
  /// How many times as fast the program's kernels are.
  double gain() const;
  /// The search's variant is not part of the program.
  void dropRecipe();
};

/// The search, and where it ran.
nlohmann::json summaryOf(const SearchResult &result, const Backend &backend);
/// The whole program's times take the place of those of the kernels that were searched.
void addTimes(const ProgramTimes &times, nlohmann::json &summary);
/// What replaced loops of launches change in the summary.
void addLoops(const LoopOutcome &loops, nlohmann::json &summary);
/// ... and what fused launches do, which the search began with.
void addFusions(const FuseTrial &fused, nlohmann::json &summary);

/// In lines of at most 80 columns where words allow it, all but the first indented; the first begins at `indent`, too.
std::string wrapped(llvm::StringRef text, unsigned indent);

/// For people, on standard error: a line each in logs, within 80 columns on a terminal. `path` is the source.
void printSummary(const SearchOutcome &outcome, const OwnFlags &flags, const std::string &path, bool fromStore);

} // namespace optiml

#endif
