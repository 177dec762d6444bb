//===- Tuning.h - a project's recorded kernels and their sources -*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_TUNING_H
#define OPTIML_LIB_DRIVER_TUNING_H

#include "KernelTimes.h"
#include "RecipeFile.h"
#include "optiml/Support/ThreadRange.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml {

struct RecordedKernel {
  std::string name;
  uint64_t launches = 0;            ///< in all recordings
  double work = 0;                  ///< of these: seconds on the GPU where they were timed, else what they should cost
  std::map<uint64_t, double> costs; ///< launchCost, by threads
  std::map<uint64_t, uint64_t> launchesOf;    ///< by threads
  bool isDefined = false, isLaunched = false; ///< in sources of this build, so that a launch can be redirected
};

/// A source of the build that has to do with recorded kernels.
struct TunedUnit {
  std::string folder, path, output;
  std::vector<std::string> arguments;         ///< of nvcc, withoutOutputs
  std::map<std::string, std::string> kernels; ///< names that Clang gives those that are searched with it, by symbol
  std::set<std::string> instantiates;         ///< ... of templates that are searched with another one
  std::set<std::string> launches;             ///< ... that others define
  double work = 0;                            ///< of its kernels' launches
};

/// One run of optiml-clang -O-search.
struct TuneSearch {
  const TunedUnit *unit;
  std::map<std::string, std::string> kernels; ///< as the unit's
  ThreadRange threads;                        ///< of their launches
  double work = 0;
  std::string failure; ///< empty: it has come to its end
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

/// Why a recorded kernel is not searched.
std::string whyLeft(const RecordedKernel &kernel);

/// The table at the end, on standard output; with `rebuild`, the objects that must be made again are removed.
void printTuning(const Tuning &tuning, const RecipeFile &recipes, bool rebuild);

} // namespace optiml

#endif
