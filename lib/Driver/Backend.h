//===- Backend.h - where a search runs its variants -------------*- C++ -*-===//
//
// The CPU backend predicts (emulator and performance model); the GPU backend measures. Both observe the program's own
// run, give the search an Evaluator, and settle what the search found.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_BACKEND_H
#define OPTIML_LIB_DRIVER_BACKEND_H

#include "optiml/Driver/Flags.h"
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Search/Search.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Processors.h"
#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

namespace optiml {

/// What a search is about.
struct SearchTask {
  const OwnFlags &flags;
  const Toolchain &toolchain;
  const CompileOptions &options;
  const std::vector<std::string> &arguments; ///< of nvcc
  std::string path;                          ///< of the source, absolute
  std::string text;
  std::string folder;        ///< for files that live as long as the search
  const Deadline *deadline;  ///< of the whole search
  OriginalBuilds *originals; ///< of the file as it is, for one comparison of whole programs at a time
  const Program *device;     ///< `text`, parsed
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now(); ///< what users wait since
  bool testsTexts = false; ///< new texts of kernels may come: what runs them must be compared, though it takes long
  bool mayPause = false;   ///< a program that runs long need not run to its end before variants are measured
  bool replaced = false;   ///< `text` is not what the file holds: it stands in its place
  std::string executable;  ///< of `text`, where buildProgram() has built it
  /// The program can be run with other sizes. Asked at once: of what the AST tells, one thread may ask at a time.
  bool readsArguments = device->readsArguments();
  const std::atomic<bool> *cancel() const { return deadline->flag(); }
  /// The program is not run, neither before nor after: its launches were recorded.
  bool isRecorded() const { return !flags.workloads.empty(); }
  /// For a Deadline, for which 0 is no limit.
  double remaining() const { return std::max(1e-3, deadline->remaining()); }
  unsigned jobs() const { return flags.jobs ? flags.jobs : availableProcessors(); }
  /// A share of the seconds that the search was given, for something beside it; infinity where there is no limit.
  double share(double part) const {
    double all = flags.budget.seconds;
    return all > 0 ? part * all : std::numeric_limits<double>::infinity();
  }
  /// Seconds that users have waited.
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); }
  /// Seconds until this part of the seconds that the search was given has passed, since users began to wait; may be
  /// less than 0.
  double leftOf(double part) const { return share(part) - elapsed(); }
  /// The file's own program has the kernels of `text`.
  bool isFromFile() const { return !replaced && !device->namesLambdas(); }
  /// By path, what stands in place of files.
  std::map<std::string, std::string> changed() const {
    return !isFromFile() ? std::map<std::string, std::string>{{options.inputs.front(), text}}
                         : std::map<std::string, std::string>();
  }
};

/// Seconds of all kernels of a program: of the original, and of a rewritten one.
struct ProgramTimes {
  double before = 0, after = 0;
};

/// Of some of a program's kernels: their time, and its share of the time of all.
struct KernelUse {
  double seconds = 0, share = 0;
};

inline double rooflineOf(const Measurement &baseline) {
  auto found = baseline.counters.find("roofline");
  return found == baseline.counters.end() ? 0 : found->second;
}

class Backend {
public:
  virtual ~Backend();
  /// For people: "NVIDIA H200".
  virtual std::string gpuName() const = 0;
  /// On how many of them variants are evaluated at once.
  virtual unsigned gpuCount() const { return 1; }
  /// Tells evaluations of one backend from those of another in the store.
  virtual std::string storeName() const = 0;
  virtual bool measures() const = 0;

  /// Runs the program and captures its launches. The error says why the program cannot be searched. Again with a task
  /// whose text is replaced: that program is searched from then on, and still compared with the original as a whole.
  virtual llvm::Error observe(const SearchTask &task) = 0;
  /// After observe(): the program ran to its end, and timeProgram() can tell its time from another's.
  virtual bool sawWholeProgram() const { return true; }
  /// The launches whose time counts.
  virtual const Workload &performance() const = 0;
  /// The workloads on which variants are compared with the original; after evaluator().
  virtual std::vector<const Workload *> exercised() const = 0;
  /// Command lines of further runs, with other sizes, for people.
  virtual std::vector<std::string> otherSizes() const = 0;

  /// Of all launches of kernels with this mangled name; none where it is not known.
  virtual std::optional<KernelUse> timeOf(const std::string &symbol) const = 0;

  /// After observe().
  virtual llvm::Expected<Evaluator *> evaluator(const SearchTask &task) = 0;
  /// A variant on everything that there is, with all counters: what evaluate() may leave for later. After evaluator().
  virtual Measurement examine(const Variant &variant) = 0;
  /// The share of the least possible time that the original of evaluator() reaches; 0: not known.
  virtual double roofline() const = 0;
  virtual void configure(SearchSettings &settings) const = 0;
  /// When the flag is raised, the search has ended, and what is still under way for it may stop. Null: none is going
  /// on.
  virtual void searchUntil(const std::atomic<bool> * /*ended*/) {}
  /// A last look at what the search found: may replace the best, or give the place back to the original. Adds to the
  /// summary what it learnt.
  virtual void settle(const SearchTask &task, SearchResult &result, nlohmann::json &summary) = 0;
  /// The kernels' time in a run of the whole rewritten program, beside the original's; predicted without a GPU.
  /// `executable`: the program, where buildProgram() has built it, or empty.
  virtual llvm::Expected<ProgramTimes> timeProgram(const SearchTask &task, const std::string &emitted,
                                                   const std::string &executable) = 0;
  /// The same of a program that may be observed next, or whose copies may be compared: what this run shows is kept for
  /// observe() and compareCopies() with that executable.
  virtual llvm::Expected<ProgramTimes> watchProgram(const SearchTask &task, const std::string &emitted,
                                                    const std::string &executable) {
    return timeProgram(task, emitted, executable);
  }
  /// Whether the whole rewritten program behaves like the original; the error says how it does not.
  virtual llvm::Error checkProgram(const SearchTask &task, const std::string &emitted, const std::string &executable,
                                   nlohmann::json &summary) = 0;
  /// Whether the program that buildProgram() has built copies the same to the host as the original (GpuProgram.h).
  virtual llvm::Expected<std::string> compareCopies(const SearchTask &, const std::string & /*executable*/,
                                                    std::optional<unsigned> /*floatBytes*/) {
    return makeError("no programs are run");
  }
  /// Where programs are run: builds the emitted text as an executable of that name in the task's folder.
  virtual llvm::Expected<std::string> buildProgram(const SearchTask &, const std::string & /*emitted*/,
                                                   const std::string & /*name*/,
                                                   const std::atomic<bool> * /*cancel*/) const {
    return std::string();
  }
  /// The program may be searched next: what that needs of it is compiled beside what goes on.
  virtual void compileAhead(const SearchTask &, const std::string & /*text*/) {}
  /// Where variants are verified beside the search: calls this with each that is faster than those before it, from any
  /// thread, until it is called with null.
  virtual void whenVerified(std::function<void(const Variant &)>) {}
  /// Seconds of the search's time that are kept back for what follows the search: timeProgram(), and `compared`:
  /// comparing whole programs on the emulator.
  virtual double concludingSeconds(bool compared) const = 0;
  /// Seconds that nvcc took for the program, after observe(); 0: not known, or nothing is built.
  virtual double buildSeconds() const { return 0; }
  virtual std::vector<std::string> notes() const = 0;
  virtual std::vector<std::string> originalFaults() const = 0;
};

/// For that compute capability.
std::unique_ptr<Backend> makeCpuBackend(unsigned arch);
/// The error says why no GPU can be used. May change the options' architecture to the GPU's. `building`: nvcc's
/// arguments, with which the program is built at once; null: it is not run.
llvm::Expected<std::unique_ptr<Backend>> makeGpuBackend(const Toolchain &toolchain, CompileOptions &options,
                                                        const std::vector<std::string> *building,
                                                        const std::atomic<bool> *cancel);

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  std::string why; ///< of the emulator: why no GPU is used
};
/// A GPU where there is one, unless the flags ask for something else; the other parameters are makeGpuBackend's.
llvm::Expected<ChosenBackend> chooseBackend(BackendChoice choice, const Toolchain &toolchain, CompileOptions &options,
                                            const std::vector<std::string> *building, const std::atomic<bool> *cancel);

/// How strictly, and with which limits, variants are compared.
VerifyOptions verifyOptions(const SearchTask &task);

} // namespace optiml

#endif
