//===- Tuning.h - a project's recorded kernels and their sources -*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_TUNING_H
#define OPTIML_LIB_DRIVER_TUNING_H

#include "KernelTimes.h"
#include "RecipeFile.h"
#include "optiml/Frontend/Toolchain.h"
#include "optiml/Support/ThreadRange.h"
#include "clang/Tooling/CompilationDatabase.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml {

struct TuneOptions {
  std::string buildFolder, recipesFile = "optiml.recipes";
  double seconds = 600;
  unsigned evaluations = 200;
  bool rebuild = false;
  bool check = false;
  std::string command; ///< to record first; empty: none
  std::vector<std::string> recordings;
  std::vector<std::string> ownFlags; ///< of optiml-clang
};

struct RecordedKernel {
  std::string name;
  double launches = 0;              ///< in all recordings
  double work = 0;                  ///< of these: seconds on the GPU where they were timed, else what they should cost
  std::map<uint64_t, double> costs; ///< launchCost, by threads
  std::map<uint64_t, double> launchesOf;      ///< by threads
  bool isDefined = false, isLaunched = false; ///< in sources of this build, so that a launch can be redirected
  /// Of its work, what launches with so many threads are.
  double shareOf(const ThreadRange &threads) const;
  double launchesWith(const ThreadRange &threads) const;
};

/// A source of the build that has to do with recorded kernels.
struct TunedUnit {
  std::string folder, path, output;
  std::vector<std::string> arguments;         ///< of nvcc, withoutOutputs
  std::map<std::string, std::string> kernels; ///< names that Clang gives those that are searched with it, by symbol
  std::set<std::string> instantiates;         ///< ... of templates that are searched with another one
  std::set<std::string> launches;             ///< ... that others define
  std::set<std::string> again;                ///< ... that are searched with another command for the same source
  double work = 0;                            ///< of its kernels' launches
};

/// One run of optiml-clang -O-search.
struct TuneSearch {
  const TunedUnit *unit;
  std::map<std::string, std::string> kernels; ///< as the unit's
  ThreadRange threads;                        ///< of their launches
  double work = 0;
  std::string failure;                       ///< empty: it has come to its end
  std::map<std::string, KernelRecipe> found; ///< by symbol: records that it has made or changed
};

/// What the recordings and the build tell.
struct Tuning {
  std::map<std::string, RecordedKernel> kernels; ///< by symbol
  KernelTimes times;                             ///< of all recordings that were timed
  std::vector<TunedUnit> units;                  ///< those with kernels first, the most work first
  std::vector<TuneSearch> searches;
};

/// The searches that the units need: one of each, and one of each class of a kernel whose launches differ much.
std::vector<TuneSearch> searchesOf(const std::vector<TunedUnit> &units,
                                   const std::map<std::string, RecordedKernel> &kernels);

/// A line of a build, of which the parts that make the object of its source are kept.
TunedUnit unitOf(const clang::tooling::CompileCommand &command);

/// Searches within so many seconds by `program`, which is optiml-clang, and saves what is found in `recipesFile`;
/// `recipe`: evaluates nothing else. Returns why that failed; empty: it has come to its end, perhaps by Ctrl-C.
std::string runSearch(const std::string &program, const TuneOptions &options, const TuneSearch &search, double seconds,
                      const std::string &recipesFile, const std::string &recipe = "");

/// Tells which recipes of the file still apply to the sources of the build. Those that do are evaluated again on the
/// recordings, if there are any: the file gets their times. An error where one does not apply, or is not confirmed as
/// faster and right.
llvm::Error checkRecipes(const std::string &program, const Toolchain &toolchain, const TuneOptions &options);

/// Why a recorded kernel is not searched.
std::string whyLeft(const RecordedKernel &kernel);

/// The table at the end, on standard output, and the objects that must be made again: those whose recipes have changed,
/// and those that are older than the file. Removes them if `options` say so.
void printTuning(const Tuning &tuning, const RecipeFile &recipes, const TuneOptions &options);

} // namespace optiml

#endif
