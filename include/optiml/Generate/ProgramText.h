//===- ProgramText.h - an understood request as a CUDA program --*- C++ -*-===//
#ifndef OPTIML_GENERATE_PROGRAMTEXT_H
#define OPTIML_GENERATE_PROGRAMTEXT_H

#include "optiml/Generate/Request.h"

namespace optiml::gen {

/// The whole program: kernels, host code with error checks, inputs, double-precision reference, self-check. An error is
/// a mistake in the operation's text.
llvm::Expected<std::string> writeProgram(const Understood &request, llvm::StringRef words, const Library &library);

/// The arguments with which the gate runs it: small and odd.
std::vector<std::string> smallArguments(const Understood &request);

} // namespace optiml::gen

#endif
