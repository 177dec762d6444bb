//===- Ptxas.h - registers, spills and shared memory from nvcc --*- C++ -*-===//
//
// Compiles the device code of a file with `nvcc -cubin -Xptxas -v` and reads what ptxas says of every kernel. Needs no
// GPU. It is also the proof that nvcc accepts a variant.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_PTXAS_H
#define OPTIML_EVALUATE_PREDICT_PTXAS_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Support/Subprocess.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace optiml {

/// What ptxas reports, by mangled kernel name. Occupancy is not filled in.
using PtxasReport = std::map<std::string, Resources>;

/// Reads the text that `-Xptxas -v` makes ptxas print, for one architecture.
PtxasReport parsePtxasOutput(llvm::StringRef text);

/// Of an nvcc command line, the flags that reach a device compilation: macros, include paths, language, optimization,
/// -Xptxas, -maxrregcount. Inputs, outputs, architectures, linking and host flags are left out.
std::vector<std::string> cubinFlags(const std::vector<std::string> &nvccArgs);

struct CubinRequest {
  std::string nvcc;
  std::string source;             ///< file to compile
  std::string cubin;              ///< where the result goes
  bool onlyPtx = false;           ///< it is PTX, and there is no report
  std::string architecture;       ///< "sm_90"
  std::string includeDirectory;   ///< where the user's file lies, when `source` lies elsewhere; may be empty
  std::vector<std::string> flags; ///< cubinFlags() of the user's command line
  ProcessLimits limits;
  const std::atomic<bool> *cancel = nullptr;
  bool givesWay = false; ///< ProcessOptions::givesWay
};

struct CubinResult {
  bool ok = false;
  bool timedOut = false;
  double processorSeconds = 0; ///< of the compiler and of what it started
  PtxasReport report;
  std::string diagnostics; ///< nvcc's first errors, when not ok
};

/// An error means that nvcc could not be run; code that does not compile is an ordinary answer.
llvm::Expected<CubinResult> compileCubin(const CubinRequest &request);

/// The same by a command that writes the cubin and prints what ptxas reports.
llvm::Expected<CubinResult> cubinOf(const CubinRequest &request, const std::vector<std::string> &command);

} // namespace optiml

#endif
