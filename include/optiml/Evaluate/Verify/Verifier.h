//===- Verifier.h - does a variant compute the same? ------------*- C++ -*-===//
//
// Compares a variant with the original on captured launches, in the emulator: on the captured inputs and on fresh ones,
// in several orders of blocks and warps, with bounds, races, divergent barriers and uninitialized shared memory
// checked.
//
// Integers match bit for bit. A floating-point cell (one that the original last wrote through a float or double) must
// lie within max(4 E, 8 eps, sqrt(A) eps) · M of the double-precision reference or of the original's own result. M is
// the cell's magnitude (the sum of the absolute terms that made it), E the original's worst own error relative to M in
// that buffer, A the number of atomic additions that made the cell. Doubles, whose reference is no more precise than
// they are, get 4096 eps. NaN and infinities must be where the original has them.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_VERIFY_VERIFIER_H
#define OPTIML_EVALUATE_VERIFY_VERIFIER_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Core/Variant.h"
#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Support/FloatRule.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Replay.h"
#include "optiml/Workload/Workload.h"
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>

namespace optiml {

struct SizedKernel;

struct VerifyOptions {
  FloatRule floats;
  double seconds = 60;     ///< limit of one replay; variants also get no more than 10 times what the original took
  double raceSeconds = 10; ///< launches whose race check takes longer are checked for bounds only
  /// A launch on which the original takes longer (bounds checked) is long: it is compared as a whole, in one order, but
  /// only some of its blocks are recomputed in double precision and checked for races.
  double longSeconds = 2;
  /// Launches on which the original takes longer (bounds checked) are left out; 0: none is. For where something else
  /// compares them too.
  double affordableSeconds = 0;
  bool comparedElsewhere = false; ///< large launches are compared by a GPU: here it only counts what code they run
  bool textsOnLarge = false;      ///< new texts of kernels (Variant::testedOnly) are compared on large launches, too
  uint64_t memoryBytes = uint64_t(4) << 30; ///< of one replay
  uint64_t seed = 1;                        ///< of fresh inputs and orders
  unsigned freshInputs = 1;                 ///< random inputs for each launch beside the captured one
  unsigned orders = 2;                      ///< orders of blocks and warps on the captured input, the natural one first
  std::string replayProgram;                ///< empty: $OPTIML_REPLAY, or beside the toolchain's libraries
  unsigned jobs = 1;                        ///< launches that one variant is compared on at the same time
  const std::atomic<bool> *cancel = nullptr;
};

/// The first place where a variant differs.
struct Difference {
  std::string kernel; ///< demangled
  std::string
      input; ///< "captured launch 3", "random input 1 of launch 3", with arguments of the program if they matter
  std::string buffer; ///< "argument 7 (float*)", "variable 'counts'"
  uint64_t index = 0; ///< element of the buffer
  std::string expected, actual;
  std::string tolerance; ///< for floats: reference and allowed distance
  /// One line with everything.
  std::string str() const;
};

/// One way in which a changed program is wrong.
struct Finding {
  Verdict verdict = Verdict::WrongResult;
  std::string what;                ///< as on the first input that shows it
  std::vector<std::string> inputs; ///< that show it, "the run with arguments 33 7"
};

/// "a; b; and 3 more": at most so many of them.
std::string someOf(llvm::ArrayRef<std::string> names, size_t most);

struct VerifyReport {
  Verdict verdict = Verdict::RuntimeError;
  std::string why;                              ///< one line, when not Correct
  std::vector<std::string> missedKernels;       ///< Untested: those of which code ran in no comparison
  std::optional<Difference> difference;         ///< WrongResult
  std::vector<emu::ReplayFault> faults;         ///< RuntimeError: what the variant did
  std::vector<emu::ReplayFault> originalFaults; ///< what the original does too; not held against the variant
  std::vector<std::string> notes;               ///< what could not be checked, and why
  std::vector<Finding> findings;                ///< CompareOptions::findAll: all that were found; else the first
  unsigned launches = 0, runs = 0;              ///< compared
  unsigned earlierRuns = 0;                     ///< in which rewrites were compared that were right before
  unsigned unaffordable = 0;                    ///< launches left out for their time
  unsigned longLaunches = 0;                    ///< of the launches, those of VerifyOptions::longSeconds
  double error = 0; ///< the largest one of floating-point results, relative to the magnitude of their terms
  /// Takes in what a comparison on other launches says; its verdict where that is final.
  void add(VerifyReport other, bool isFinal);
  bool correct() const { return verdict == Verdict::Correct; }
};

/// Where optiml-replay is: $OPTIML_REPLAY, or beside the toolchain's libraries.
std::string replayProgramOf(const Toolchain &toolchain);

/// Makes device modules of `text`, one for each ModuleMode and file; an Error is a compile error of that text.
using ModuleBuilder =
    std::function<llvm::Error(const std::string &text, const std::vector<std::pair<uint32_t, std::string>> &outputs)>;

/// Keeps the original's results, so that many variants cost only their own runs. Safe to use from several threads.
class Verifier {
public:
  /// `text` is the original program. The workloads' folders must stay while the Verifier lives.
  static llvm::Expected<std::unique_ptr<Verifier>> create(const Toolchain &toolchain, const std::string &path,
                                                          const std::string &text, const CompileOptions &compile,
                                                          std::vector<Workload> workloads,
                                                          const VerifyOptions &options);
  /// With another way to build modules.
  static llvm::Expected<std::unique_ptr<Verifier>>
  create(ModuleBuilder builder, const std::string &text, std::vector<Workload> workloads, const VerifyOptions &options);
  ~Verifier();

  /// Launches that are too large to be compared as a whole: of these some blocks run where the others leave code that
  /// has not run. Before the first call of verify().
  void addLarge(Workload workload);
  /// Adds launches of other sizes, made of those in `recorded` (DerivedSizes.h), in a new folder below `directory`.
  /// Before addLarge() and the first call of verify(). The error says why that could not be tried.
  llvm::Error addDerivedSizes(const Workload &recorded, const std::vector<SizedKernel> &kernels,
                              const std::string &directory, double seconds);
  /// Compares every captured launch of every rewritten kernel whose conditions hold; where they hold for large ones
  /// only, some blocks of these run under the checkers. NotApplicable when they hold for none. An Error means that
  /// verification itself could not run.
  llvm::Expected<VerifyReport> verify(const Variant &variant);
  /// The same: sets the verdict, the reason and the counters verify.launches, verify.runs (how many captured launches
  /// were compared with the original, in how many runs), verify.error and verify.long.
  void verify(const Variant &variant, Measurement &into);
  /// The workloads that are compared as a whole.
  std::vector<Workload> workloads() const;
  /// The original's module in emu::ModeShadow.
  const std::string &shadowModule() const;
  /// What the original program does wrong itself (a data race, say), each once.
  std::vector<std::string> originalFaults() const;
  /// What every verification so far could not check, each once.
  std::vector<std::string> notes() const;

private:
  Verifier();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Emulated builds of originals, for several comparisons with one of them. Compile options must be alike.
class OriginalBuilds {
public:
  static llvm::Expected<OriginalBuilds> create();
  /// The program in this mode (Emulator/ABI.h), with `appended` behind its text, built at the first call.
  llvm::Expected<std::string> program(const Toolchain &toolchain, const std::string &path, const std::string &appended,
                                      const CompileOptions &compile, uint32_t mode);

private:
  explicit OriginalBuilds(TempDir dir) : dir(std::move(dir)) {}
  TempDir dir;
  std::map<std::tuple<std::string, std::string, uint32_t>, std::string> programs;
};

struct CompareOptions {
  VerifyOptions verify;
  std::vector<std::string> arguments; ///< the programs' command line
  /// Also try kernels on random contents of their buffers. Not for a program that has kernels of its own, whose buffers
  /// only the program itself can fill.
  bool freshKernels = true;
  bool otherSizes = true; ///< also run with odd sizes in place of integers among the arguments
  double seconds = 120;   ///< limit of one run of a program
  double firstSeconds =
      std::numeric_limits<double>::infinity(); ///< of the original's first run, which tells what others take
  bool everyPath = true;                       ///< Untested where code of the changed kernels has not run
  double coverageSeconds = 90;                 ///< processor time for arguments that lead to code which has not run yet
  bool sandboxed = false;                      ///< both run in the sandbox: the changed one may be a stranger's
  bool findAll = false;                        ///< go on after a difference, with the other inputs
  std::string appended;                        ///< stands behind the text of both, such as a harness
  /// Names of the functions and kernels that the changed program may come to; what others do is no part of it. Empty:
  /// all of them.
  std::set<std::string> reached;
};

/// Compares two versions of a whole program: what they copy back to the host, their exit codes and the words they
/// print, with the same arguments, in several orders of blocks, with odd sizes, and with input that lies far apart or
/// below zero; and each kernel that both launch alike on random contents of its buffers, where the program reads the
/// results back. `changedText` stands in place of `path`'s content. Kernel faults of the changed version (races too)
/// are differences unless the original has them as well.
llvm::Expected<VerifyReport> comparePrograms(OriginalBuilds &originals, const Toolchain &toolchain,
                                             const std::string &path, const std::string &changedText,
                                             const CompileOptions &compile, const CompareOptions &options);

} // namespace optiml

#endif
