//===- optiml-apply - recipes, written into the source --------------------===//
//
// docs/cli/optiml-apply.md describes it; lib/Driver/ApplyCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/ApplyCommand.h"

int main(int argc, char **argv) { return optiml::runApplyCommand(argc, argv); }
