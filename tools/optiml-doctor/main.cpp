//===- optiml-doctor - does this machine have what OptiML needs? ----------===//
//
// docs/cli/optiml-doctor.md describes it; lib/Driver/DoctorCommand.cpp is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/DoctorCommand.h"

int main(int argc, char **argv) { return optiml::runDoctorCommand(argc, argv); }
