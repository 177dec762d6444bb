//===- ReportCommand.h - the program optiml-report --------------*- C++ -*-===//
#ifndef OPTIML_REPORT_REPORTCOMMAND_H
#define OPTIML_REPORT_REPORTCOMMAND_H

namespace optiml {

/// docs/cli/optiml-report.md. Returns the exit code.
int runReportCommand(int argc, char **argv);

} // namespace optiml

#endif
