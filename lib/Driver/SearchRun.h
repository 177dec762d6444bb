//===- SearchRun.h - one search of one text ---------------------*- C++ -*-===//
//
// Searches the kernels of a program that the backend has observed, and writes the new program.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_SEARCHRUN_H
#define OPTIML_LIB_DRIVER_SEARCHRUN_H

#include "Backend.h"
#include "BuildBeside.h"
#include "LoopTrial.h"
#include "ProposerChain.h"
#include "SearchSummary.h"
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/LanguageModels/ModelSession.h"
#include "optiml/Report/Progress.h"
#include "optiml/Report/Trajectory.h"
#include "optiml/Support/StopWatch.h"

namespace optiml {

/// Hashes for the store: evaluations with one context are alike, and searches with one key have one outcome.
struct SearchKey {
  std::string context, search;
};

/// `device` is a view of `text`. `models` may be null.
SearchKey searchKeyOf(const OwnFlags &flags, const CompileOptions &options, const Program &device,
                      const Backend &backend, const ModelSession *models);

/// Of OptiML: another one may find another recipe.
extern const char *const searchVersion;

/// The kernels that the program launches and the flags ask for, with what is known of their launches. Names those that
/// cannot be read in notes on standard error; an error when none is left. Actions after which a kernel would run for no
/// launch are left out; `launched` outlives the space.
llvm::Expected<std::unique_ptr<KernelSpace>> createSearchSpace(const SearchTask &task, const Program &device,
                                                               const Workload &launched);
/// By symbol: what all launches of a kernel have in common, and the geometry of the heaviest one.
std::map<std::string, LaunchHints> launchHints(const SearchTask &task, const Workload &launched);

/// Threads of the smallest launch of each kernel.
std::map<std::string, uint64_t> leastThreads(const Workload &performance);
/// The variant for launches that are not much smaller than those that were searched on.
Variant limitedToLaunches(const Variant &variant, const Workload &performance, ThreadRange threads);

/// A line for the head of each rewritten kernel; none where no gain is known (0).
std::map<std::string, std::string> gainTexts(const Variant &variant, double gain, const Backend &backend);

/// What searches of one file have in common.
struct SearchMeans {
  Store *store = nullptr;         ///< may be null
  ModelSession *models = nullptr; ///< may be null
  Progress &progress;
  const std::atomic<bool> &interrupted;
};

/// Of one search. `budget` is its time, which the task's deadline may exceed where what was measured is settled.
struct SearchLimits {
  unsigned evaluations = 0; ///< 0: no such limit
  const Deadline &budget;
  double toBeat = 0; ///< a gain over the original; where the roofline leaves no room for more, there is no search
};

class SearchRun {
public:
  /// `device` is the device view of `task`'s text, in which `fused` tells what was fused.
  SearchRun(const SearchTask &task, Backend &backend, const Program &device, const FuseTrial &fused, SearchKey key,
            const SearchMeans &means, const SearchLimits &limits, StopWatch &watch)
      : task(task), backend(backend), device(device), fused(fused), key(std::move(key)), means(means), limits(limits),
        watch(watch) {}
  ~SearchRun();
  /// An error says why there can be no search.
  llvm::Expected<SearchOutcome> run();

private:
  llvm::Error parseHost();
  llvm::Error findLoopsOfLaunches();
  SearchSettings settings() const;
  void openTrajectory(const SearchSettings &settings, const KernelSpace &space);
  llvm::Error setFirst(SearchSettings &settings, const KernelSpace &space);
  llvm::Expected<SearchResult> search(KernelSpace &space, Evaluator &evaluator);
  llvm::Error emit(const SearchResult &result, SearchOutcome &outcome);
  /// Gives up what is not worth new code, or does not behave like the original.
  /// `executable`: empty where it is not built.
  void check(const EmittedProgram &emitted, bool isTimed, std::string executable, SearchOutcome &outcome);
  /// Programs with verified variants, and with loops of launches replaced, are built while the search goes on.
  void leaveLoopsThatTakeTooLong();
  void buildBeside();
  bool withLoops() const { return loops && loops->any(); }
  /// The text with the variant, whose kernels' heads tell `gain` where it is not 0.
  llvm::Expected<EmittedProgram> emitWith(const Variant &variant, double gain, const std::vector<LoopRewrite> &loops);
  Variant unchanged() const;
  Variant limited(const Variant &variant) const;
  void conclude(const SearchResult &result, SearchOutcome &outcome);
  const std::string &path() const { return task.options.inputs.front(); }

  const SearchTask &task;
  Backend &backend;
  const Program &device;
  const FuseTrial &fused;
  SearchKey key;
  SearchMeans means;
  SearchLimits limits;
  StopWatch &watch;

  std::optional<LoopTrials> loops; ///< of launches, where a loop can have launched a kernel
  std::string noLoops;             ///< why there are none
  std::unique_ptr<Program> host;   ///< of the same text; null until it is needed
  std::mutex emitting;             ///< one thread may look at the AST at a time
  ProposerChain proposers;
  std::unique_ptr<Trajectory> trajectory;
  std::unique_ptr<BuildBeside> programs;
};

} // namespace optiml

#endif
