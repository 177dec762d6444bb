//===- ProgramText.h - an understood request as a CUDA program --*- C++ -*-===//
#ifndef OPTIML_GENERATE_PROGRAMTEXT_H
#define OPTIML_GENERATE_PROGRAMTEXT_H

#include "optiml/Generate/Request.h"

namespace optiml::gen {

/// The whole program: kernels, host code with error checks, inputs, double-precision reference, self-check. An error is
/// a mistake in the operation's text.
llvm::Expected<std::string> writeProgram(const ProgramSpec &spec, llvm::StringRef words, const Library &library);

/// The same, but all kernels are launched by a function with the signature of writeHarness().
llvm::Expected<std::string> writeExample(const ProgramSpec &spec, llvm::StringRef words, const Library &library);

/// What a request's kernels can be tested with whoever wrote them: the library's inputs, reference and comparison,
/// around a function `launch` that somebody else defines.
struct Harness {
  std::string text; ///< the program without kernels; calls written::launch and prints `verdict` where all is well
  std::string
      signature; ///< "void launch(const float *dX, float *dOut, int rows, int cols)": device pointers, constants, sizes
  std::string reference; ///< the function that says what is to be computed
};
llvm::Expected<Harness> writeHarness(const ProgramSpec &spec, llvm::StringRef verdict, const Library &library);

/// The arguments with which the gate runs it: small and odd.
std::vector<std::string> smallArguments(const ProgramSpec &spec);
/// Others, for a second run: about twice as large, and odd where any size is allowed.
std::vector<std::string> otherArguments(const ProgramSpec &spec);
/// Between the small ones and those that were asked for (their geometric mean), to predict times with.
std::vector<std::string> middleArguments(const ProgramSpec &spec);

} // namespace optiml::gen

#endif
