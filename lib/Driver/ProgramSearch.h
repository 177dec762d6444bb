//===- ProgramSearch.h - the searches of one program ------------*- C++ -*-===//
//
// Launches of a program may be fused before its kernels are searched. Where that is no loss it is done; where it trades
// threads for traffic, the program is searched both ways, and the faster one stays.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_PROGRAMSEARCH_H
#define OPTIML_LIB_DRIVER_PROGRAMSEARCH_H

#include "SearchRun.h"

namespace optiml {

class ProgramSearch {
public:
  /// `given` is the device view of `task`'s text.
  ProgramSearch(SearchTask task, Backend &backend, const Program &given, SearchKey key, const SearchMeans &means,
                const SearchLimits &limits)
      : task(std::move(task)), backend(backend), given(given), key(std::move(key)), means(means), limits(limits) {}
  /// Leaves the outcome in the store too. An error says why there can be no search.
  llvm::Expected<SearchOutcome> run();

private:
  llvm::Expected<SearchOutcome> search();
  void tellSmallBudget() const;
  llvm::Expected<SearchOutcome> searchFused(const FuseTrial &fused, const std::string &name, const SearchLimits &within,
                                            const Deadline *deadline);
  llvm::Expected<SearchOutcome> searchApart(const SearchLimits &within, const Deadline *deadline);
  llvm::Expected<SearchOutcome> searchFully(const SearchLimits &within, const Deadline *deadline);
  void remember(const SearchOutcome &outcome);

  SearchTask task;
  Backend &backend;
  const Program &given;
  SearchKey key;
  SearchMeans means;
  SearchLimits limits;

  StopWatch watch;
  FuseTrial fused; ///< without a loss of threads
};

} // namespace optiml

#endif
