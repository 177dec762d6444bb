//===- Workloads.h - what a search runs the kernels on ----------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_WORKLOADS_H
#define OPTIML_LIB_DRIVER_WORKLOADS_H

#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Support/ThreadRange.h"
#include "optiml/Workload/Workload.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <map>

namespace optiml {

struct SearchTask;
struct SizedKernel;

struct CapturedRuns {
  Workload performance;               ///< the program's own run
  double seconds = 0;                 ///< that it took
  std::vector<Workload> otherSizes;   ///< runs with odd sizes, where the program takes sizes
  std::vector<std::string> arguments; ///< of each of these runs, for people
};

/// Texts in place of files, by path.
using ChangedFiles = std::map<std::string, std::string>;

/// Builds the program for the emulator, runs it with `arguments` and captures its launches into folders under
/// `directory`; then again with odd sizes, for `otherSeconds` in all (0: none; infinity: no limit). The error says why
/// the program cannot be searched: it does not build for the emulator, fails, or runs longer than `ownSeconds`.
llvm::Expected<CapturedRuns> captureRuns(const CompileOptions &options, const Toolchain &toolchain,
                                         const ChangedFiles &changed, const std::vector<std::string> &arguments,
                                         const std::string &directory, double ownSeconds, double otherSeconds,
                                         const std::atomic<bool> *cancel);

/// The launches of a program with `changed` in place of files, run with `arguments`, in the sandbox or not.
llvm::Expected<Workload> captureChanged(const CompileOptions &options, const Toolchain &toolchain,
                                        const ChangedFiles &changed, const std::vector<std::string> &arguments,
                                        const std::string &directory, double seconds, bool sandboxed,
                                        const std::atomic<bool> *cancel);

/// Only the runs with odd sizes, each of at most `seconds`, for `total` seconds in all.
llvm::Expected<CapturedRuns> captureOtherSizes(const CompileOptions &options, const Toolchain &toolchain,
                                               const ChangedFiles &changed, const std::vector<std::string> &arguments,
                                               const std::string &directory, double seconds, double total,
                                               const std::atomic<bool> *cancel);

/// The launches that were recorded in `folders`, of kernels of `program` and with so many threads: those of the first,
/// and the others as runs with other sizes. Nothing is written into these folders; what must be goes below `directory`.
/// The error says which folder holds none.
llvm::Expected<CapturedRuns> recordedRuns(const std::vector<std::string> &folders, const ThreadRange &threads,
                                          const Program &program, const std::string &directory);

/// The kernels of `recorded` that have integers among their arguments, for launches beside those of `others`.
std::vector<SizedKernel> sizedKernels(const Program &program, const Workload &recorded,
                                      const std::vector<Workload> &others);

/// Adds a run with launches of other sizes, made of the recorded ones (DerivedSizes.h), within so many seconds. The
/// error says why that could not be tried.
llvm::Error addDerivedSizes(const SearchTask &task, double seconds, CapturedRuns &runs);

/// Removes the runs that are no other size: those that make every launch of the program's own run, for the program
/// ignores its arguments.
void dropOwnSize(const Workload &own, CapturedRuns &runs);

/// Threads of all its launches, each counted once.
double capturedThreads(const Workload &workload);
/// Whether all its launches can be run many times on the emulator.
bool isSmall(const Workload &workload);

/// Command lines with small numbers, most of them odd, in place of the integers of `arguments`; for none, guesses of
/// one to three sizes.
std::vector<std::vector<std::string>> oddArguments(const std::vector<std::string> &arguments);

/// Sets BufferImage::element of what a kernel's symbol does not tell: of buffers that launches get in members of
/// structures, and of variables. Writes the workload again; the error says why it could not.
llvm::Error nameElements(Workload &workload, const Program &program);

} // namespace optiml

#endif
