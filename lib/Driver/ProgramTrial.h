//===- ProgramTrial.h - a whole program against the original ----*- C++ -*-===//
//
// What changes the host's launches is no kernel, so that the search over kernels cannot weigh it: the whole program is
// compared (on the emulator, with odd sizes) and timed with it and without it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_PROGRAMTRIAL_H
#define OPTIML_LIB_DRIVER_PROGRAMTRIAL_H

#include "Backend.h"

namespace optiml {

/// Compares the program with the original, on the emulator. What was compared, or an error.
llvm::Expected<std::string> compareWholeProgram(const SearchTask &task, const Backend &backend, const std::string &text);

/// How many times as fast the program must become for new code to be worth it.
double leastProgramGain(const SearchTask &task, const Backend &backend);

} // namespace optiml

#endif
