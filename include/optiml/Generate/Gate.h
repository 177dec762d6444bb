//===- Gate.h - what a program must pass before it is shown -----*- C++ -*-===//
//
// The same for every program text, whoever wrote it.
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
};

struct GateReport {
  enum class Step { Emulator, Nvcc, Run, SelfCheck, Passed } step = Step::Passed; ///< the one that failed, or Passed
  std::string why; ///< compiler's messages, the fault, or what the self-check printed
  bool passed() const { return step == Step::Passed; }
};

/// Compiles `text` for the emulator and with nvcc, runs it under the checkers (bounds, races, uninitialized shared memory,
/// barriers), once more in another order of blocks, and looks at its own verdict: it must print PASSED and exit with 0.
/// An error means that the gate itself could not work.
llvm::Expected<GateReport> gateProgram(const std::string &text, const GateOptions &options, const Toolchain &toolchain);

} // namespace optiml::gen

#endif
