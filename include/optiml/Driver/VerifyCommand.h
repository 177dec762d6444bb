//===- VerifyCommand.h - comparing two files ---------------------*- C++ -*-===//
//
// What optiml-verify does, and optiml-run --verify: the changed text stands in place of the original's, and both are
// compared as whole programs. A file without main() gets a harness for each of its functions.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_VERIFYCOMMAND_H
#define OPTIML_DRIVER_VERIFYCOMMAND_H

#include "optiml/Evaluate/Harness/Harness.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Frontend/CompileOptions.h"
#include <string>
#include <vector>

namespace optiml {

/// What is compared, and how.
struct VerifyRequest {
  std::string original, changed; ///< files
  CompileOptions compile;        ///< of the original
  CompareOptions compare;        ///< with the program's arguments
  std::string function;          ///< the only one to call, of a file without main(); empty: all
  CallSpec call;                 ///< what is known of how it is called
};

/// The outcome for a program, or for one function of a file without main().
struct VerifyOutcome {
  std::string function; ///< empty: a program
  CallSpec call;        ///< of the function
  std::string error;    ///< why nothing could be compared; empty: something was
  VerifyReport report;
  /// 0: the same, 1: not, 2: cannot tell.
  int exitCode() const;
};

/// An Error when nothing at all could be done, such as a file that cannot be read.
llvm::Expected<std::vector<VerifyOutcome>> verifyFiles(const Toolchain &toolchain, OriginalBuilds &originals,
                                                       const VerifyRequest &request);

/// 1 where one of them is not the same, else the largest exit code.
int exitCodeOf(const std::vector<VerifyOutcome> &outcomes);

/// What the report says beside its verdict, a line each, behind `label`.
void printNotes(llvm::raw_ostream &out, const VerifyReport &report, llvm::StringRef label = "");

/// The value of a flag such as --time=SECONDS, or an Error that names it.
llvm::Expected<double> positiveNumber(llvm::StringRef flag, llvm::StringRef value);

/// The program optiml-verify.
int runVerifyCommand(int argc, char **argv);

} // namespace optiml

#endif
