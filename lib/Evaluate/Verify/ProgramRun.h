//===- ProgramRun.h - runs of whole programs in the emulator ----*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_PROGRAMRUN_H
#define OPTIML_LIB_EVALUATE_VERIFY_PROGRAMRUN_H

#include "CopyLogs.h"
#include "Coverage.h"
#include "Explore.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include <atomic>

namespace optiml {

struct ProgramInput {
  Arguments arguments;
  uint64_t fresh = 0; ///< seed of other buffer contents, 0: none
  FreshIntegers integers = FreshIntegers::Random;
  std::string name;
  std::optional<FloatRange> host; ///< envFreshHost: the program's own input changes
  bool given = false;             ///< the arguments are the user's
  std::string types;              ///< envFreshTypes' lines
  std::string shift;              ///< envShift
  bool quick = false;             ///< without the search for races
  double seconds = 0;             ///< limit of a run; 0: as long as others took
  bool late = false;              ///< envLate
  bool otherFill = false;         ///< envOtherFill
  bool otherMemory = false;       ///< envOtherMemory
  std::string rounding;           ///< envRounding
};

struct ProgramOutcome {
  ProcessResult process;
  CopyLogFile log;
  std::vector<emu::ReplayFault> faults;
  ProgramCoverage coverage;
  // What ran, to do so again.
  std::string program;
  ProgramInput input;
  uint64_t order = 0;
  /// It did not come to its own end.
  bool stopped() const;
};

/// With what the original's kernels take its buffers for: those of the changed program may take one for something else,
/// such as four numbers at once.
ProgramInput typed(ProgramInput input, const ProgramOutcome &original);

/// Runs programs under the limits of a comparison, and reads what they leave. Several threads may do so.
class ProgramRunner {
public:
  ProgramRunner(const CompareOptions &options, TempDir dir) : options(options), dir(std::move(dir)) {}
  /// `order`: a seed for the order of blocks and warps; 0: the natural one.
  llvm::Expected<ProgramOutcome> run(const std::string &program, const ProgramInput &input, uint64_t order);
  /// Only what it covers.
  llvm::Expected<ProbeResult> probe(const std::string &program, const Arguments &arguments,
                                    const ArgumentExplorer::ProbeOptions &how, const std::string &shift = "");
  /// What shows how the program runs: its output, and how near conditions outside of main() came to their outcomes.
  /// Empty where it did not end well.
  llvm::Expected<std::string> signature(const std::string &program, const Arguments &arguments);
  /// How much longer programs take here than the processor works on them, as others want it, too: from 1 to 4. What is
  /// tried must not depend on that, so the limits of a search for arguments count processor time.
  double slowdown() const;
  std::string file(const std::string &name) const { return dir.file(name); }
  /// With another exit code than this one, probes have not ended well.
  void expectExitCode(int code) { exitCode = code; }
  /// The only kernels that are run on other contents of their buffers; empty: all.
  void setFreshKernels(const std::set<std::string> &symbols);

private:
  llvm::Expected<ProcessResult> runProbe(const std::string &program, const Arguments &arguments,
                                         const ArgumentExplorer::ProbeOptions &how, const std::string &shift,
                                         ProgramCoverage &coverage);
  /// Runs a program on one thread, with `seconds` of processor time.
  llvm::Expected<ProcessResult> start(const std::string &program, emu::RunOptions &run, double seconds);
  bool endedWell(const ProcessResult &process) const;
  /// `folder`: of this run's files; it is made.
  emu::RunOptions optionsFor(const Arguments &arguments, const std::string &folder) const;

  const CompareOptions &options;
  TempDir dir;
  std::string freshKernels;
  int exitCode = 0; ///< of a program that ends well
  std::atomic<unsigned> counter{0};
  std::atomic<double> slowest{0};           ///< run on the user's arguments
  std::atomic<double> waited{0}, worked{0}; ///< seconds of all runs: on the clock, and of the processor
};

} // namespace optiml

#endif
