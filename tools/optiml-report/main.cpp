//===- optiml-report - a search as one web page ---------------------------===//
//
// docs/cli/optiml-report.md describes it; lib/Report/ReportCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Report/ReportCommand.h"

int main(int argc, char **argv) { return optiml::runReportCommand(argc, argv); }
