//===- LoopTrial.h - replacing loops of launches, tried out -----*- C++ -*-===//
//
// A loop of launches that is one algorithm can be replaced as a whole, with tiles of one size or another. Which of them
// pays is timed in the whole program. Where programs are run, those with the original's kernels are built while the
// search goes on: nvcc takes longer than all that follows.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_LOOPTRIAL_H
#define OPTIML_LIB_DRIVER_LOOPTRIAL_H

#include "ProgramTrial.h"
#include "optiml/Support/StopWatch.h"
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>

namespace optiml {

/// What became of the loops of launches.
struct LoopOutcome {
  std::vector<LoopRewrite> rewrites;     ///< empty: all loops stay
  std::optional<EmittedProgram> emitted; ///< with them
  std::string executable;                ///< of `emitted`; empty: not built
  bool withVariant = false;              ///< `emitted` has the search's variant, too
  TimedProgram timed;                    ///< of `emitted`
  std::vector<std::string> notes;        ///< why loops stay
};

class LoopTrials {
public:
  using Loops = std::vector<LoopRewrite>;
  /// Writes a program in which these loops are replaced.
  using Write = std::function<llvm::Expected<EmittedProgram>(const Loops &loops)>;

  LoopTrials(const SearchTask &task, Backend &backend, FoundLoops found);
  ~LoopTrials();
  LoopTrials(const LoopTrials &) = delete;
  LoopTrials &operator=(const LoopTrials &) = delete;

  bool any() const { return !found.rewrites.empty(); }
  /// Builds programs with the original's kernels from now on, and compares them with the original, on at most `jobs`
  /// processors. `write` is called before this returns.
  void buildBeside(const Write &write, unsigned jobs);
  /// What pays beside the variant: `write` writes programs with it, which without the loops are `speedup` times as fast
  /// as the original. `variant`: null where the search found nothing. Nothing is built beside any more.
  LoopOutcome finish(const Write &write, const Variant *variant, double speedup);
  /// Where finish() spent its time.
  const StopWatch &watch() const { return laps; }

private:
  struct Choice {
    Loops rewrites;
    EmittedProgram emitted;
    std::string executable;
    ProgramTimes times;
    std::string verified, refused; ///< what was compared, or why the program is wrong; both empty: not yet known
    bool cannotTell = false;       ///< `refused` says nothing against the program
    double gain() const { return times.after > 0 ? times.before / times.after : 0; }
  };

  void buildAll();
  void compareAll();
  double remaining() const; ///< seconds
  void compare(Choice &choice, const Deadline &within);
  void compareOnGpu(Choice &choice);
  void stopBuilding();
  void stopComparing(size_t but);
  llvm::Expected<Choice> fastestBuilt();
  llvm::Expected<Choice> fastestWritten(const Write &write, double wanted);
  llvm::Error addVariant(const Write &write, const Variant &variant, Choice &choice, bool &added);

  const SearchTask &task;
  Backend &backend;
  FoundLoops found;
  Deadline building, comparing; ///< what goes on beside the search
  /// When comparing ends, after the search.
  std::chrono::steady_clock::time_point endBy = std::chrono::steady_clock::time_point::max();
  std::mutex mutex; ///< of what follows, while it does
  std::condition_variable changed;
  std::vector<Choice> choices;
  size_t next = 0, built = 0, compared = 0; ///< so many are begun, are built, are compared
  bool ending = false;
  std::string failure; ///< of the last one that was not built
  std::vector<std::future<void>> builders;
  std::future<void> comparer;
  StopWatch laps;
};

} // namespace optiml

#endif
