//===- Run.h - running an emulated program under limits ---------*- C++ -*-===//
#ifndef OPTIML_EMULATOR_RUN_H
#define OPTIML_EMULATOR_RUN_H

#include "optiml/Support/Subprocess.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml::emu {

struct RunOptions {
  std::vector<std::string> args;          ///< the program's own
  std::string captureDir;                 ///< non-empty: where a workload of its launches goes (made when missing)
  double seconds = 300;                   ///< wall time
  uint64_t memoryBytes = 0;               ///< resident memory; 0: three quarters of the machine's
  bool inheritOutput = false;             ///< pass stdout and stderr through
  std::string faultFile;                  ///< where a fault is also written as JSON
  std::map<std::string, std::string> env; ///< further environment
  /// For programs that a model wrote: in the sandbox (Sandbox.h), writing only to the scratch folder and where the
  /// fields above say.
  bool sandboxed = false;
  std::vector<std::string> writable; ///< folders where it may write, too, when it is sandboxed
  uint64_t outputBytes = 64 << 20;   ///< kept of each of stdout and stderr
  const std::atomic<bool> *cancel = nullptr;
};

/// Runs a program that buildProgram linked, in a fresh scratch folder without standard input. Files that its arguments
/// name by their places in the current folder are copied there.
llvm::Expected<ProcessResult> runProgram(const std::string &executable, const RunOptions &options);

} // namespace optiml::emu

#endif
