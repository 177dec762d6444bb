//===- SearchProgram.h - optiml-clang -O-search -----------------*- C++ -*-===//
#ifndef OPTIML_DRIVER_SEARCHPROGRAM_H
#define OPTIML_DRIVER_SEARCHPROGRAM_H

namespace optiml {

/// What the launcher execs when a search is asked for: searches, and compiles the result (or, when there is nothing
/// better or no search is possible, the original) with the real nvcc. Returns the process's exit code.
int searchProgram(int argc, char **argv);

} // namespace optiml

#endif
