//===- optiml-diagnose - what limits a program, and what may be done ------===//
//
// docs/cli/optiml-diagnose.md describes it; lib/Driver/DiagnoseCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/DiagnoseCommand.h"

int main(int argc, char **argv) { return optiml::runDiagnoseCommand(argc, argv); }
