//===- MemoryUse.h - what a search takes from memory and leaves -*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_MEMORYUSE_H
#define OPTIML_LIB_DRIVER_MEMORYUSE_H

#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/Core/KernelText.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Propose/MemoryPolicy.h"
#include "optiml/Search/Search.h"
#include "optiml/Store/Store.h"
#include "optiml/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include <nlohmann/json.hpp>

namespace optiml {

/// What the kernels of a program are like, prepared as far as they can be. `root` is that of `space`, which is over
/// `program`, and times are of `workload`.
KernelIdentities identifyKernels(KernelSpace &space, const SearchState &root, const Program &program,
                                 const Workload &workload);

/// Collects what a search evaluates, for learn().
class LessonRecorder : public SearchObserver {
public:
  void evaluated(const EvaluationRecord &record) override {
    // A language model's text belongs to one kernel.
    if (llvm::none_of(record.recipe, [](const Action &action) { return action.transform == replaceBody; }))
      tried.push_back({record.recipe, record.measurement});
  }
  const std::vector<TriedRecipe> &all() const { return tried; }

private:
  std::vector<TriedRecipe> tried;
};

/// Learns from a finished search. `trusted` is false where the winner did not stand a last check: then its recipe and
/// its like are not remembered as openings.
llvm::Error rememberSearch(Store &store, const KernelIdentities &kernels, const MemoryOrigin &origin,
                           const LessonRecorder &recorder, const SearchResult &result, bool trusted);

/// What memory knows of the kernels at hand, for the trajectory.
nlohmann::json describeMatches(const LearntMemory &memory);

/// The folder of the store that the flags ask for.
std::string storeFolderOf(const OwnFlags &flags);

/// --optiml-memory=import:FILE, export:FILE and stats. Returns the process's exit code.
int runMemoryCommand(const OwnFlags &flags);

} // namespace optiml

#endif
