//===- Emit.h - the optimized program as CUDA source ------------*- C++ -*-===//
//
// The user's file with, beside each optimized kernel, its twin and a dispatcher that tests the recorded conditions and
// falls back to the original; launch sites call the dispatcher. Plain CUDA that needs nothing of OptiML.
//
// In the optimized program OPTIML_DISABLE=<kernel>|all restores the original kernels, and OPTIML_TRACE=1 counts at exit
// which path ran how often.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_EMIT_H
#define OPTIML_DRIVER_EMIT_H

#include "optiml/Core/Variant.h"
#include "optiml/Frontend/Program.h"

namespace optiml {

struct EmittedProgram {
  std::string text;                 ///< with #line directives, so that messages and __LINE__ name the user's lines
  unsigned dispatched = 0;          ///< launch sites that call a dispatcher
  std::vector<std::string> remarks; ///< "file:line: …": sites that keep the original, and why
};

/// `host` is a host view of the original text, `fileName` what the user calls it. `summaries` gives a comment line for each rewritten kernel.
llvm::Expected<EmittedProgram> emitProgram(const Variant &variant, const Program &host, const std::string &fileName,
                                           const std::map<std::string, std::string> &summaries);

/// The emitted text for people.
std::string withoutLineDirectives(const std::string &emitted);

} // namespace optiml

#endif
