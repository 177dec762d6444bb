//===- ApplyCommand.h - the program optiml-apply ----------------*- C++ -*-===//
#ifndef OPTIML_DRIVER_APPLYCOMMAND_H
#define OPTIML_DRIVER_APPLYCOMMAND_H

namespace optiml {

/// docs/cli/optiml-apply.md. Returns the exit code.
int runApplyCommand(int argc, char **argv);

} // namespace optiml

#endif
