//===- Programs.h - optiml-search and optiml-gen ----------------*- C++ -*-===//
#ifndef OPTIML_DRIVER_PROGRAMS_H
#define OPTIML_DRIVER_PROGRAMS_H

namespace optiml {

/// What the launcher execs when a search is asked for: searches, and compiles the result (or, when there is nothing
/// better or no search is possible, the original) with the real nvcc. Returns the process's exit code.
int searchProgram(int argc, char **argv);

/// The whole of optiml-gen. Returns its exit code: 0 written, 1 an error, 2 not offered or not clear.
int runGenerateCommand(int argc, char **argv);

} // namespace optiml

#endif
