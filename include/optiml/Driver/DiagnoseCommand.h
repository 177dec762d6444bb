//===- DiagnoseCommand.h - the program optiml-diagnose ----------*- C++ -*-===//
#ifndef OPTIML_DRIVER_DIAGNOSECOMMAND_H
#define OPTIML_DRIVER_DIAGNOSECOMMAND_H

namespace optiml {

/// docs/cli/optiml-diagnose.md. Returns the exit code.
int runDiagnoseCommand(int argc, char **argv);

} // namespace optiml

#endif
