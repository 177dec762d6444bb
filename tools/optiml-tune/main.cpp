//===- optiml-tune - searches a project's recorded kernels ----------------===//
//
// docs/cli/optiml-tune.md describes it; lib/Driver/TuneCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/TuneCommand.h"

int main(int argc, char **argv) { return optiml::runTuneCommand(argc, argv); }
