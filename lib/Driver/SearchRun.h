//===- SearchRun.h - one search of one program ------------------*- C++ -*-===//
//
// Observes the program, searches its kernels, and writes the new program: everything between a parsed file that no stored
// search answers and its last compilation.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_SEARCHRUN_H
#define OPTIML_LIB_DRIVER_SEARCHRUN_H

#include "ProposerChain.h"
#include "SearchKey.h"
#include "SearchSummary.h"
#include "optiml/Report/Trajectory.h"
#include "optiml/Support/StopWatch.h"

namespace optiml {

class SearchRun {
public:
  /// `given` is the device view of `task`'s text. `budget` is the search's time, which `task.deadline` may exceed where what
  /// was measured is settled. `store` and `models` may be null.
  SearchRun(SearchTask task, Backend &backend, const Program &given, SearchKey key, Store *store, ModelSession *models,
            const Deadline &budget, const std::atomic<bool> &interrupted)
      : task(std::move(task)), backend(backend), given(given), key(std::move(key)), store(store), models(models), budget(budget),
        interrupted(interrupted) {}
  /// An error says why there can be no search.
  llvm::Expected<SearchOutcome> run();

private:
  llvm::Error observe();
  llvm::Error fuse();
  llvm::Error parseHost();
  llvm::Error findLoopsOfLaunches();
  SearchSettings settings() const;
  void openTrajectory(const SearchSettings &settings);
  llvm::Expected<SearchResult> search(KernelSpace &space, Evaluator &evaluator);
  llvm::Error emit(const SearchResult &result, SearchOutcome &outcome);
  /// Gives up what is not worth new code, or does not behave like the original.
  void check(const EmittedProgram &emitted, bool withLoops, SearchOutcome &outcome);
  void conclude(const SearchResult &result, SearchOutcome &outcome);
  const Program &device() const { return fused.device ? *fused.device : given; }
  const std::string &path() const { return task.options.inputs.front(); }

  SearchTask task;
  Backend &backend;
  const Program &given;
  SearchKey key;
  Store *store;
  ModelSession *models;
  const Deadline &budget;
  const std::atomic<bool> &interrupted;

  StopWatch watch;
  FuseTrial fused;
  FoundLoops loops;              ///< that can be replaced
  std::unique_ptr<Program> host; ///< of device()'s text; null until it is needed
  ProposerChain proposers;
  std::unique_ptr<Trajectory> trajectory;
};

} // namespace optiml

#endif
