//===- GenerateInvocation.h - optiml-gen's command line ---------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_GENERATEINVOCATION_H
#define OPTIML_LIB_DRIVER_GENERATEINVOCATION_H

#include "optiml/Driver/Flags.h"
#include "optiml/Generate/Request.h"
#include "llvm/ADT/ArrayRef.h"

namespace optiml {

struct GenerateInvocation {
  enum class Mode { Write, Explain, Candidates, List, Schema, Help } mode = Mode::Write;
  gen::Request request; ///< where it is said formally
  std::string words;    ///< the request in plain words; empty: it is formal
  std::string helpFor;  ///< Help: an operation; empty: the program
  std::string output, budget;
  OwnFlags own;
  std::vector<std::string> searchFlags; ///< own flags that --optimize passes on
  unsigned repairs = 3;
  double seconds = 30;
  bool markdown = false, optimize = false, nvcc = true, gated = true;
};

/// Reads the arguments behind the program's name, and the file of --request. The error says what is wanted.
llvm::Expected<GenerateInvocation> parseGenerateInvocation(llvm::ArrayRef<char *> argv, const gen::Library &library);

/// The help of the program, or of one operation.
std::string generateHelp(llvm::StringRef operation, const gen::Library &library);

} // namespace optiml

#endif
