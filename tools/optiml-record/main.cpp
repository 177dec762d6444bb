//===- optiml-record - records the launches of a command ---------------===//
//
// docs/cli/optiml-record.md describes it; lib/Driver/RecordCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/RecordCommand.h"

int main(int argc, char **argv) { return optiml::runRecordCommand(argc, argv); }
