//===- VerifierImpl.h - the Verifier's state --------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_VERIFIERIMPL_H
#define OPTIML_LIB_EVALUATE_VERIFY_VERIFIERIMPL_H

#include "BufferCompare.h"
#include "ConcretePlan.h"
#include "Coverage.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Support/TempDir.h"
#include <mutex>
#include <set>

namespace optiml {

/// The original on one input of one captured launch, computed at first use.
struct ReferenceCase {
  std::mutex mutex;
  bool ready = false;
  std::string unusable; ///< why there is no such input
  std::string name;     ///< "captured launch 3"
  std::map<unsigned, std::string> inputs;
  std::vector<BufferReference> buffers;
  std::vector<bool> present;        ///< buffers that the original's module has
  std::set<std::string> faultKinds; ///< what the original does wrong itself
  std::vector<emu::ReplayFault> faults;
  double boundsSeconds = 0, verifySeconds = 0;
  bool raceChecked = false;     ///< its race check was quick enough
  bool isLong = false;          ///< VerifyOptions::longSeconds
  std::vector<uint32_t> blocks; ///< the only ones that were recomputed in double precision; empty: all
  bool unaffordable = false;
};

struct ReplayRun {
  emu::ReplayResult result;
  std::string outputDir;
};

struct Verifier::Impl {
  ModuleBuilder build;
  std::string text;
  std::vector<Workload> workloads;
  VerifyOptions options;
  TempDir dir;
  std::atomic<unsigned> counter{0};
  std::string boundsModule, verifyModule, shadowModule;                                     ///< of the original
  std::map<std::tuple<unsigned, unsigned, unsigned>, std::unique_ptr<ReferenceCase>> cases; ///< workload, launch, input
  std::mutex casesMutex;

  explicit Impl(TempDir dir) : dir(std::move(dir)) {}
  std::string scratchDir();
  ReferenceCase &caseOf(unsigned workload, unsigned launch, unsigned input);
  /// Runs optiml-replay; crashes and limits of the child become faults.
  llvm::Expected<ReplayRun> replay(const std::string &module, unsigned workload, unsigned launch,
                                   const ReferenceCase &inputs, const ConcretePlan &plan, uint64_t orderSeed,
                                   double seconds, std::vector<uint32_t> onlyBlocks = {});
  /// Makes the case ready. An Error when the original cannot be run at all.
  llvm::Error prepare(ReferenceCase &c, unsigned workload, unsigned launch, unsigned input);
  llvm::Error runOriginal(ReferenceCase &c, unsigned workload, unsigned launch);
  /// What a buffer holds before the launch; empty for a variable that is as the module has it.
  llvm::Expected<std::string> inputOf(const ReferenceCase &c, const LaunchImage &launch, unsigned workload,
                                      unsigned buffer) const;
  llvm::Error readReference(ReferenceCase &c, const LaunchImage &launch, unsigned workload, const ReplayRun &bounds,
                            const ReplayRun &shadow);
  /// Finds what depends on the order of blocks. `cellsKnown`: numbers were recomputed in double precision.
  llvm::Error markUnstable(ReferenceCase &c, unsigned workload, unsigned launch, const ConcretePlan &plan,
                           bool cellsKnown);
  /// Whether the launch changes numbers in floating point only, as far as its buffers' types tell.
  llvm::Expected<bool> changesOnlyFloats(const ReferenceCase &c, const LaunchImage &launch, unsigned workload) const;

  struct Target {
    unsigned workload, launch;
    ConcretePlan plan;
  };
  /// `thorough`: with more fresh inputs, and every launch must be compared.
  llvm::Expected<VerifyReport> check(const std::string &changedText, const std::vector<Target> &targets,
                                     VerifyReport report, bool thorough);
  /// What a variant does wrong on some blocks of a long launch, of which nothing is compared. False when the report is
  /// final.
  llvm::Expected<bool> checkRaces(const std::string &module, const Target &t, ReferenceCase &c, VerifyReport &report);
  /// False when the report is final.
  llvm::Expected<bool> checkRun(const std::string &module, const Target &t, ReferenceCase &c, uint64_t orderSeed,
                                double seconds, VerifyReport &report, Coverage &covered);
};

} // namespace optiml

#endif
