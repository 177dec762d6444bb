//===- optiml-verify - does a changed file compute the same? --------------===//
//
// docs/cli/optiml-verify.md describes it; lib/Driver/VerifyCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/VerifyCommand.h"

int main(int argc, char **argv) { return optiml::runVerifyCommand(argc, argv); }
