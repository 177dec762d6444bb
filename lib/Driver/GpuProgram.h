//===- GpuProgram.h - the user's program on a GPU ---------------*- C++ -*-===//
//
// Builds the user's program with the real nvcc, runs it with OptiML's library injected (liboptiml-capture.so), and
// reads what the library wrote: how long each kernel took, and the launches with their buffers.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_GPUPROGRAM_H
#define OPTIML_LIB_DRIVER_GPUPROGRAM_H

#include "Backend.h"
#include "KernelTimes.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Workload/Signature.h"
#include "optiml/Workload/Workload.h"
#include <future>
#include <map>
#include <optional>

namespace optiml {

/// nvcc's arguments for an executable in place of what the command line asks for.
std::vector<std::string> executableArguments(const std::vector<std::string> &arguments, const std::string &executable);

/// Builds the user's text as it is.
llvm::Expected<std::string> buildOriginalProgram(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                                 const std::string &executable, const std::atomic<bool> *cancel);
/// An executable below the task's folder, of the user's text or of `text` in its place. `cancel`: null for the task's.
llvm::Expected<std::string> buildGpuProgram(const SearchTask &task, const std::string *text, const std::string &name,
                                            const std::atomic<bool> *cancel = nullptr);

/// One run of a program.
struct GpuRun {
  int exitCode = 0;
  std::string out, err;
  KernelTimes times;
  double seconds = 0; ///< wall time, until it paused where it did
  /// Whether the time of its heaviest kernel is that of launches which were not captured.
  bool isUndisturbed() const {
    return !times.kernels.empty() && times.kernels.front().recorded < times.kernels.front().launches;
  }
};

/// Runs it and measures its kernels. The error says that it could not be run, or ran too long. `copies`: a file for
/// what it copies to the host (lib/Gpu/Capture/Copies.cpp); empty: none.
llvm::Expected<GpuRun> timeGpuProgram(const SearchTask &task, const std::string &executable,
                                      const std::string &copies = "");

/// A program that runs under observation. It is ended with this object.
class ObservedProgram {
public:
  static llvm::Expected<std::unique_ptr<ObservedProgram>> start(const SearchTask &task, const std::string &executable,
                                                                std::map<std::string, std::string> env);
  ~ObservedProgram();
  /// Waits until it ends or pauses. What there is then; of a program that pauses, without an exit code.
  llvm::Expected<GpuRun> wait();
  /// Waits for the end, but no longer than that; none where it has not come.
  llvm::Expected<std::optional<GpuRun>> wait(double seconds);
  /// After wait(): the program stands still, and leaves the GPU to others.
  bool isPaused() const { return pausedProcess != 0; }
  /// Lets one that pauses go on, and waits.
  llvm::Expected<std::optional<GpuRun>> finish(double seconds);

private:
  explicit ObservedProgram(const std::atomic<bool> *cancel) : unwanted(0, cancel) {}
  llvm::Expected<GpuRun> ended();
  std::string times; ///< the file
  double limit = 0;
  Deadline unwanted; ///< raised when nobody waits for it any more
  int pausedProcess = 0;
  std::future<llvm::Expected<ProcessResult>> result;
};

/// A run with the launches of kernels whose name the POSIX extended regular expression matches (empty: of all) captured
/// into `folder`. It takes so much longer; its kernels' times are of launches that are not captured. Where
/// the task lets it, one that runs long pauses, and comes back as `paused`. `copies`: as for timeGpuProgram().
llvm::Expected<GpuRun> captureGpuProgram(const SearchTask &task, const std::string &executable,
                                         const std::string &kernels, const std::string &folder, Workload &workload,
                                         std::unique_ptr<ObservedProgram> &paused, const std::string &copies = "");
/// The POSIX extended regular expression for kernels with these names, mangled or not.
std::string expressionFor(llvm::ArrayRef<std::string> names);

/// Launches that were not captured count as those of their kernel that were.
void weighAll(Workload &workload, const std::vector<KernelTime> &kernels);

/// The original, and what is known of it.
struct OriginalProgram {
  const std::string &executable;
  const GpuRun &run;
  double kernelSeconds; ///< of its kernels, measured by themselves; 0: not known
};
/// Runs both by turns; the shorter run of each counts. `watched`: a run of the changed program with its launches
/// captured, as the original's was, which may tell enough; null: there is none.
llvm::Expected<ProgramTimes> timeBesides(const SearchTask &task, const OriginalProgram &original,
                                         const std::string &changed, const GpuRun *watched = nullptr);
/// The same of an original that pauses, where both have so many seconds. What does not end in time is not compared,
/// which the summary tells; the error says where the changed program fails.
llvm::Error comparePausedProgram(const SearchTask &task, ObservedProgram &original, const std::string &changed,
                                 double seconds, nlohmann::json &summary);
/// Whether the changed program prints and returns what the original does, and its kernels take no longer; the error
/// says what differs. Adds times and numbers that differ to the summary.
llvm::Error compareGpuPrograms(const SearchTask &task, const OriginalProgram &original, const std::string &changed,
                               nlohmann::json &summary);

/// A program, and what a run of it copied to the host.
struct CopyingProgram {
  std::string executable;
  std::string copies; ///< the file; empty: it is run for them
  int exitCode = 0;   ///< of that run
};
/// What lies where in the memory of one run.
class ElementsByAddress {
public:
  /// Of all buffers of the launches.
  void add(const std::vector<LaunchImage> &launches);
  /// Unknown where nothing is known of that address, or kernels take what is there for different things.
  ElementType at(uint64_t address) const;

private:
  struct Range {
    uint64_t bytes;
    ElementType type;
    bool isClear = true;
  };
  std::map<uint64_t, Range> ranges;
};
/// Whether two programs copy the same to the host, where neither copies anything else later. Floating-point numbers may
/// differ by rounding: where `elements`, of the original's run, say that there are some, and else where all other
/// floating-point numbers have `floatBytes` (0: there are none; none: nothing is known of them). Returned is what was
/// compared.
llvm::Expected<std::string> compareGpuCopies(const SearchTask &task, const CopyingProgram &original,
                                             const CopyingProgram &changed, const ElementsByAddress &elements,
                                             std::optional<unsigned> floatBytes);

/// In which words the outputs of two programs differ; words that already differ between two runs of the original do not
/// count, and numbers that differ are told apart (they may be times). Empty: none.
struct OutputDifference {
  std::string word;   ///< "'FAILED' instead of 'PASSED'"
  std::string number; ///< "12.5 instead of 12.6"
};
OutputDifference compareOutputs(const std::string &original, const std::string &again, const std::string &changed);

} // namespace optiml

#endif
