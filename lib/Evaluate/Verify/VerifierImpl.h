//===- VerifierImpl.h - the Verifier's state --------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_VERIFIERIMPL_H
#define OPTIML_LIB_EVALUATE_VERIFY_VERIFIERIMPL_H

#include "BufferCompare.h"
#include "ConcretePlan.h"
#include "Coverage.h"
#include "Proofs.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Support/TempDir.h"
#include <map>
#include <mutex>
#include <optional>
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

/// Inputs of a launch: 0 is the captured one; random ones follow; from here on those of FloatRange::Masked, and from
/// there on those of FloatRange::Wide.
constexpr unsigned firstMasked = 1000, firstWide = 2000;

struct ReplayRun {
  emu::ReplayResult result;
  std::string outputDir;
};

struct Verifier::Impl {
  ModuleBuilder build;
  std::string text;
  std::vector<Workload> workloads;
  VerifyOptions options;
  std::optional<unsigned> large; ///< a workload of which only some blocks run
  TempDir dir;
  std::atomic<unsigned> counter{0};
  std::string boundsModule, verifyModule, shadowModule;                                     ///< of the original
  std::map<std::tuple<unsigned, unsigned, unsigned>, std::unique_ptr<ReferenceCase>> cases; ///< workload, launch, input
  std::mutex casesMutex;
  Coverage originalCovered;          ///< by all cases
  bool originalCoverageKnown = true; ///< of all of them
  std::mutex coverageMutex;          ///< of these two

  /// Launches of a kernel with sizes beside those that all variants are compared on, made when one needs them.
  struct NearSizes {
    Workload recorded; ///< the kernel's launches
    SizedKernel kernel;
    std::string directory;
    double seconds;
    std::once_flag made;
  };
  std::map<unsigned, NearSizes> near; ///< by workload, whose launches are there once they are made

  Proofs proofs;

  std::set<std::string> notes, originalFaults; ///< of all verifications
  std::mutex notesMutex;                       ///< of these two

  explicit Impl(TempDir dir) : dir(std::move(dir)) {}
  std::string scratchDir();
  ReferenceCase &caseOf(unsigned workload, unsigned launch, unsigned input);
  /// Runs optiml-replay; crashes and limits of the child become faults.
  llvm::Expected<ReplayRun> replay(const std::string &module, unsigned workload, unsigned launch,
                                   const ReferenceCase &inputs, const ConcretePlan &plan, uint64_t orderSeed,
                                   double seconds, std::vector<uint32_t> onlyBlocks = {}, bool writes = true);
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
  /// A changed text, built on demand.
  struct Changed {
    const std::string &text;
    std::string folder, verifyModule, boundsModule; ///< empty: not built yet
    bool dataDecides = false;                       ///< what a launch of it touches, or what of it runs
    bool racesChecked = false;                      ///< on some launch
    std::mutex mutex;                               ///< of all this
  };
  /// A rewrite, and the launches that run it.
  struct Compared {
    const KernelRewrite *rewrite;
    std::string key;
    std::vector<Target> targets, large;
  };
  /// Adds those of a workload that run the rewrite to `into`. Where one keeps the original, a note in the report says
  /// why. An Error says that a launch would be over the limits.
  llvm::Error addTargets(unsigned workload, const KernelRewrite &rewrite, std::vector<Target> &into,
                         VerifyReport &report) const;
  /// The rewrites that some launch runs. Notes and errors as of addTargets().
  llvm::Expected<std::vector<Compared>> comparedBy(const Variant &variant, VerifyReport &report) const;
  /// Compares it now. The report, which says Correct before, has the verdict where something is wrong.
  llvm::Error compareNow(Changed &changed, const Compared &rewrite, VerifyReport &report);
  llvm::Error buildVerify(Changed &changed);
  llvm::Error buildBounds(Changed &changed);
  /// Rewrites that are only tested are compared on more fresh inputs, and on every launch. Of large launches some
  /// blocks run, where code is left that no other launch reaches.
  llvm::Expected<VerifyReport> check(Changed &changed, const Compared &rewrite);
  /// Compares on these launches, side by side. True when the report is final.
  llvm::Expected<bool> compareAll(Changed &changed, llvm::ArrayRef<Target> targets, unsigned inputs, bool thorough,
                                  VerifyReport &report, Coverage &covered);
  /// Compares on further inputs, where the data decide whether some code runs. False when the report is final.
  llvm::Expected<bool> checkOtherInputs(const Changed &changed, const std::vector<Target> &targets, unsigned inputs,
                                        VerifyReport &report, Coverage &covered);
  /// Leaves out what the original does not run either.
  void leaveOutCopies(const Changed &changed, Coverage &covered);
  /// Looks for runs of the code that has not run, and settles whether the text is correct or untested. False when the
  /// report was final before.
  llvm::Expected<bool> reachTheRest(Changed &changed, const Compared &rewrite, unsigned inputs, VerifyReport &report,
                                    Coverage &covered);
  /// Runs a few blocks of a large launch, or else more, where that is a matter of moments. Arguments as of checkSome.
  llvm::Expected<bool> runLarge(Changed &changed, const Target &t, bool few, VerifyReport &report, Coverage &covered,
                                double &blockSeconds);
  /// Compares on sizes beside those of the other launches. False when the report is final.
  llvm::Expected<bool> compareNear(Changed &changed, const Compared &rewrite, VerifyReport &report, Coverage &covered);
  /// Runs at most `most` blocks of a launch, and compares what they write with what the whole original leaves there,
  /// unless that is done elsewhere. False when the report is final.
  /// `blockSeconds`: gets what a block takes; infinite where that is too long.
  llvm::Expected<bool> checkSome(Changed &changed, const Target &t, uint64_t most, VerifyReport &report,
                                 Coverage &covered, double &blockSeconds);
  /// Runs all blocks of a launch for the code that has not run, in parts side by side, where each block takes `seconds`
  /// and that is a matter of moments. What they write is compared elsewhere. False when the report is final.
  llvm::Expected<bool> checkAll(Changed &changed, const Target &t, double seconds, VerifyReport &report,
                                Coverage &covered);
  /// What the blocks did wrong, and the original's do not. False when the report is final.
  llvm::Expected<bool> checkFaults(const emu::ReplayResult &ran, const Target &t, const std::vector<uint32_t> &blocks,
                                   VerifyReport &report);
  /// Where nothing small is there to compare: some blocks of each of these. The report has the verdict where one does
  /// something wrong.
  llvm::Error checkLargeAlone(Changed &changed, const std::vector<Target> &large, VerifyReport &report);
  /// Whether the cells that the run has changed are as the original leaves them.
  llvm::Expected<bool> agreesWhereItWrote(const ReplayRun &run, const Target &t, ReferenceCase &c);
  /// What a variant does wrong on some blocks of a long launch, of which nothing is compared. False when the report is
  /// final.
  llvm::Expected<bool> checkRaces(const std::string &module, const Target &t, ReferenceCase &c, VerifyReport &report);
  /// Compares the launch on all that there is to compare. False when the report is final.
  llvm::Expected<bool> checkTarget(Changed &changed, const Target &t, unsigned inputs, bool thorough,
                                   VerifyReport &report, Coverage &covered);
  /// False when the report is final. `ran`: what optiml-replay says of the run.
  llvm::Expected<bool> checkRun(const std::string &module, const Target &t, ReferenceCase &c, uint64_t orderSeed,
                                double seconds, VerifyReport &report, Coverage &covered,
                                emu::ReplayResult *ran = nullptr);
};

/// The variant did that on the input of that name. Returns false.
bool refuse(VerifyReport &report, const emu::ReplayFault &f, const std::string &where);

} // namespace optiml

#endif
