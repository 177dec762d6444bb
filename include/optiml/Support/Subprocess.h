//===- Subprocess.h - running other programs under limits -------*- C++ -*-===//
//
// Everything OptiML runs (the user's program, nvcc, a candidate kernel) is untrusted: it runs in its own session, with
// limits on time, resident memory, output and file size; its standard input is empty unless it is given. When it ends,
// or a limit is hit, the whole process group is killed.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_SUPPORT_SUBPROCESS_H
#define OPTIML_SUPPORT_SUBPROCESS_H

#include "optiml/Support/Sandbox.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace optiml {

struct ProcessLimits {
  double seconds = 0;              ///< wall time; 0: none
  uint64_t memoryBytes = 0;        ///< resident memory of the process group (polled); 0: none
  uint64_t outputBytes = 64 << 20; ///< kept bytes of each of stdout and stderr; the rest is dropped
  uint64_t fileBytes = 0;          ///< size of one written file (RLIMIT_FSIZE); 0: none
};

struct ProcessOptions {
  ProcessLimits limits;
  std::string workingDirectory;           ///< empty: the caller's
  std::string shownName;                  ///< what the program finds in its own argv[0]; empty: argv[0]
  std::map<std::string, std::string> env; ///< added to the inherited environment; an empty value removes the name
  std::optional<Sandbox> sandbox;         ///< for what a model wrote; `env` is added to what the sandbox lets through
  std::string input;                      ///< what it reads on standard input; empty: nothing
  bool endsDescendants = false;           ///< also those that left the session: a daemon that it started
  bool givesWay = false;                  ///< to others, where there are too few cores: a lower priority
  bool inheritInput = false;              ///< it reads our standard input
  bool inheritOutput = false;             ///< stdout/stderr go to ours instead of being captured
  const std::atomic<bool> *cancel = nullptr; ///< polled; when it becomes true the group is killed
  double graceSeconds = 0;                   ///< ... after it has had so long to end by SIGINT
};

struct ProcessResult {
  int exitCode = -1;       ///< valid when signal == 0
  int signal = 0;          ///< the signal that ended it, or 0
  bool timedOut = false;   ///< killed for its time limit
  bool overMemory = false; ///< killed for its memory limit
  bool cancelled = false;
  std::string out, err;
  double seconds = 0;    ///< wall time
  double cpuSeconds = 0; ///< of the process and of those that it waited for
  bool ok() const { return exitCode == 0 && signal == 0 && !timedOut && !overMemory && !cancelled; }
  /// "exit code 3", "killed by signal 11 (Segmentation fault)", "ran longer than 10 s", …
  std::string describe() const;
};

/// Runs argv[0] (searched on PATH) and waits. An error means it could not be started.
llvm::Expected<ProcessResult> runProcess(const std::vector<std::string> &argv, const ProcessOptions &options = {});

/// The full path of `name` on PATH, or empty.
std::string findOnPath(const std::string &name);

/// Quotes argv for a message a user can paste into a shell.
std::string shellQuote(const std::vector<std::string> &argv);

} // namespace optiml

#endif
