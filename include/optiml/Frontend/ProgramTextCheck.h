//===- ProgramTextCheck.h - a whole program from a model --------*- C++ -*-===//
//
// A whole program by somebody else is untrusted, and compiling it already reads what it includes. Before any compiler
// sees it its tokens are checked: standard headers only, no assembly, nothing that opens files, starts processes or
// reads the environment. That gives clear refusals early; what the program then does when it runs is the sandbox's
// business.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_PROGRAMTEXTCHECK_H
#define OPTIML_FRONTEND_PROGRAMTEXTCHECK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml {

/// Longer programs are refused.
inline constexpr size_t maxProgramBytes = 64 << 10;

struct WrittenProgram {
  std::string text;
  std::vector<std::string> includes; ///< names of standard headers
  std::string body;                  ///< the text without its #include lines (which leave empty ones)
  std::vector<std::string> kernels;  ///< names of its __global__ functions, in their order
};

/// The error says what is not allowed and in which line, in words for whoever wrote it.
llvm::Expected<WrittenProgram> checkWrittenProgram(llvm::StringRef text);

/// Longer changed programs are refused.
inline constexpr size_t maxChangedBytes = 1 << 20;

/// The same for a changed version of a program that is trusted: lines that it has too may stay as they are.
llvm::Error checkChangedProgram(llvm::StringRef changed, llvm::StringRef original);

} // namespace optiml

#endif
