//===- optiml-gen - from a request to a CUDA program ----------------------===//
//
// docs/generating.md describes it; lib/Driver/GenerateCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Programs.h"

int main(int argc, char **argv) { return optiml::runGenerateCommand(argc, argv); }
