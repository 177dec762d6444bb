//===- DoctorCommand.h - the program optiml-doctor --------------*- C++ -*-===//
#ifndef OPTIML_DRIVER_DOCTORCOMMAND_H
#define OPTIML_DRIVER_DOCTORCOMMAND_H

namespace optiml {

/// docs/cli/optiml-doctor.md. Returns the exit code.
int runDoctorCommand(int argc, char **argv);

} // namespace optiml

#endif
