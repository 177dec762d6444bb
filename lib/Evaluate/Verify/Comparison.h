//===- Comparison.h - two versions of a whole program -----------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_COMPARISON_H
#define OPTIML_LIB_EVALUATE_VERIFY_COMPARISON_H

#include "ProgramRun.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Support/Deadline.h"

namespace optiml {

/// "with arguments 3 4"
std::string joined(const Arguments &arguments);
/// A program's output, split at blanks and punctuation.
std::vector<std::string> wordsOf(llvm::StringRef output);
/// The text without "#line", so that places in it can be looked up.
std::string physicalLines(llvm::StringRef text);

/// comparePrograms() at work.
class Comparison {
public:
  Comparison(OriginalBuilds &originals, const Toolchain &toolchain, const std::string &path,
             const std::string &changedText, const CompileOptions &compile, const CompareOptions &options, TempDir dir)
      : originals(originals), toolchain(toolchain), path(path),
        changedText(physicalLines(changedText + options.appended)), compile(compile), options(options),
        changedBuilder(compile, {{path, this->changedText}}, toolchain), runner(options, std::move(dir)) {}
  llvm::Expected<VerifyReport> run();

private:
  /// Whether the changed program does well on this input; false when the report is final. `skipped` when the original
  /// itself does not do well on it.
  llvm::Expected<bool> compareOn(const ProgramInput &input, std::string &skipped);
  llvm::Expected<bool> compareOnce(const ProgramInput &input, std::string &skipped);
  llvm::Expected<ProgramOutcome> runTheChanged(ProgramInput input, unsigned order);
  llvm::Expected<ProgramOutcome> runWithoutRaces(const ProgramInput &input, uint64_t seed);
  llvm::Expected<bool> judge(const ProgramInput &input, ProgramOutcome &original, const ProgramOutcome &changed,
                             std::string &skipped);
  llvm::Expected<bool> judgeEnd(const ProgramInput &input, const ProgramOutcome &original,
                                const ProgramOutcome &changed, std::string &skipped);
  llvm::Expected<bool> judgeResults(const ProgramInput &input, ProgramOutcome &original, const ProgramOutcome &changed,
                                    std::string &skipped);
  /// Whether a run that was stopped at its limit goes on for ever, as far as hangSeconds tell.
  llvm::Expected<bool> hangs(const ProgramOutcome &original, const ProgramOutcome &changed);
  /// Whether nothing depends on shared memory that nothing has written.
  llvm::Expected<bool> isUnused(const ProgramOutcome &changed);
  bool judgeOutput(const ProgramInput &input, const ProcessResult &original, const ProcessResult &changed);
  /// Notes why the original, or both, could not be compared on an input.
  void leaveOut(const ProgramInput &input, const std::string &why);
  void tellWhatIsLeftOut();
  /// Adds a note, once.
  void note(const std::string &text);
  /// Adds a finding, one for each key (what it says, if empty); false.
  bool fail(Verdict verdict, const std::string &what, const std::string &input = "", const std::string &key = "");
  /// The program's own input changes.
  ProgramInput otherData(const Arguments &arguments, FloatRange floats,
                         FreshIntegers integers = FreshIntegers::Keep) const;
  /// Whether a kernel of the original has a buffer of such elements.
  bool takes(llvm::function_ref<bool(const ElementType &)> wanted) const;
  /// Whether the changed program gives its work on streams the order that it needs.
  llvm::Expected<bool> compareLate();
  /// What goes wrong with a program when its work on streams is late, or nothing.
  llvm::Expected<std::optional<std::string>> differsWhenLate(const std::string &program);
  /// Odd sizes and other data, on which every comparison is made.
  std::vector<ProgramInput> usualInputs() const;
  llvm::Expected<bool> compareOnUsualInputs();
  std::string whatIsMissing() const;
  /// In double precision the changed program computes the same: then its results in single precision may differ more.
  llvm::Expected<bool> differsByRounding(const ProgramInput &input, ProgramOutcome &original);
  /// Leaves out results that are others when the original rounds "up" or "down".
  llvm::Error roundOtherwise(ProgramInput input, const std::string &rounding, ProgramOutcome &original);
  llvm::Expected<std::set<std::string>> originalFaultKinds(const ProgramInput &input);
  /// Tries data and arguments that may lead to code that has not run; false when the report is final.
  llvm::Expected<bool> reachTheRest();
  llvm::Expected<bool> tryOtherData(const Deadline &deadline);
  /// `program` is explored: the changed one or the original, of which code in the functions `known` does not matter.
  llvm::Expected<bool> tryOtherArguments(const std::string &program, const std::set<uint64_t> &known,
                                         const Deadline &deadline);
  /// Arguments on which the changed program alone did not come to its end.
  llvm::Expected<bool> trySuspects(const Deadline &deadline);
  llvm::Expected<bool> isQuickInOriginal(const Arguments &arguments);
  /// First as the user (`whole`) would call it, as far as that shows the same.
  llvm::Expected<bool> compareLines(ArgumentExplorer &explorer, const std::vector<Arguments> &lines,
                                    const Arguments &whole, const Deadline &time);
  /// Compares on arguments that have not been, while there is time. With each, what the program alone takes.
  llvm::Expected<bool> compareEach(llvm::ArrayRef<std::pair<Arguments, double>> lines, const Deadline &deadline);
  /// One more of each size than with the arguments that show most: what is right at an edge may be wrong beside it.
  llvm::Expected<bool> tryNeighbours(const ArgumentExplorer &explorer, const Deadline &deadline);
  /// Sizes that are multiples of what the text counts in, and one less: quotients that round up have no condition that
  /// would tell whether they did.
  llvm::Expected<bool> tryMultiples(const ArgumentExplorer &explorer, const Deadline &deadline);
  /// What is a multiple of a modulus may be an odd one or an even one, which a wrong modulus takes for the same.
  llvm::Expected<bool> tryNextMultiples(const ArgumentExplorer &explorer, const Deadline &deadline);
  /// The user's arguments, and for those that are missing values with which the program runs the same.
  llvm::Expected<Arguments> completed(const std::string &program);
  llvm::Expected<bool> tryOtherAlignment(const std::string &program, llvm::ArrayRef<Arguments> lines,
                                         const Deadline &deadline);
  /// Compares on these arguments, with which the program alone takes so long, and with other data.
  llvm::Expected<bool> compareWith(const Arguments &arguments, double alone, double limit = 0);
  bool nothingMissed() const {
    return covered.missed().empty() && covered.idleKernels().empty() && covered.missedSites().empty();
  }
  /// Forgets what a comparison need not run: kernels that are as they were, and those that nothing launches.
  void leaveOutUnchanged();

  OriginalBuilds &originals;
  const Toolchain &toolchain;
  const std::string &path;
  std::string changedText; ///< with its own numbers of lines
  std::string originalText;
  const CompileOptions &compile;
  const CompareOptions &options;
  emu::ProgramBuilder changedBuilder;
  ProgramRunner runner;
  std::string shadowProgram, changedProgram;
  std::string shadowOfChanged; ///< with double-precision twins; empty: not built yet
  /// Searched for races, where data does not decide what the changed kernels touch: ProgramCoverage::launches.
  std::map<Arguments, uint64_t> raceFree;
  bool isPatient = false;   ///< a line may take long: something has not run that must have
  std::string quickProgram; ///< the changed one, without the search for races; empty: not built yet
  int originalExit = 0;
  bool usesStreams = false; ///< the changed one
  Coverage covered;         ///< of the changed program, in comparisons
  Coverage coveredByOriginal;
  std::vector<int64_t> constants; ///< that main() is written with
  std::set<Arguments> compared;
  std::map<Arguments, bool> suspects; ///< on which the changed program alone failed; whether it ran too long
  unsigned dataKind = 0;
  static constexpr double hangSeconds = 12; ///< what nobody asked for ends sooner
  static constexpr size_t mostFindings = 20;
  std::map<std::string, size_t> findings;                                ///< by key
  std::vector<std::pair<std::string, std::vector<std::string>>> leftOut; ///< reasons, with the inputs' names
  VerifyReport report;
};

} // namespace optiml

#endif
