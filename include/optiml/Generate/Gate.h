//===- Gate.h - what a program must pass before it is shown -----*- C++ -*-===//
//
// The same for every program text, whoever wrote it; of what a model wrote more is asked.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GENERATE_GATE_H
#define OPTIML_GENERATE_GATE_H

#include "optiml/Frontend/Toolchain.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml::gen {

struct GateOptions {
  std::vector<std::vector<std::string>> runs = {{}}; ///< arguments of each run on the emulator
  double seconds = 120;                              ///< for each run
  bool nvcc = true;                                  ///< must compile with nvcc, too
  std::string verdict = "PASSED";                    ///< what it prints where all is well
  /// A stranger's text: it is compiled in a child process under limits.
  bool isWritten = false;
  /// Names of its kernels. Non-empty: its self-check is not trusted but tried (tryOwnCheck).
  std::vector<std::string> kernels;
};

struct GateReport {
  enum class Step {
    Emulator,
    Nvcc,
    Run,
    SelfCheck,
    Trial,
    Passed
  } step = Step::Passed;             ///< the one that failed, or Passed
  std::string why;                   ///< compiler's messages, the fault, or what the self-check printed
  unsigned altered = 0, noticed = 0; ///< Trial: how many results were altered, and how many of them its check noticed
  bool passed() const { return step == Step::Passed; }
};

/// Compiles `text` for the emulator and with nvcc, runs it in the sandbox under the checkers (bounds, races,
/// uninitialized shared memory, barriers), once more in another order of blocks, and looks at its own verdict: it must
/// print PASSED and exit with 0. An error means that the gate itself could not work.
///
/// Trial of its self-check, at the sizes of the first run: with any of its kernels left out, and with copied results
/// altered at twelve places spread over all of them, it must no longer pass. Of the altered places a quarter must be
/// noticed, since a program may copy back more than counts (the end of a compacted array, say).
llvm::Expected<GateReport> gateProgram(const std::string &text, const GateOptions &options, const Toolchain &toolchain);

/// Seconds that the kernels of a program take with these arguments, by the performance model
/// (Evaluate/PerformanceModel.h): the sum over its launches. The program passed the gate; it runs in the sandbox, at
/// most `seconds` long.
llvm::Expected<double> predictProgram(const std::string &text, const std::vector<std::string> &arguments,
                                      double seconds, const Toolchain &toolchain);

} // namespace optiml::gen

#endif
