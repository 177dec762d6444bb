//===- TuneCommand.h - searches a project's recorded kernels ----*- C++ -*-===//
#ifndef OPTIML_DRIVER_TUNECOMMAND_H
#define OPTIML_DRIVER_TUNECOMMAND_H

namespace optiml {

/// The whole of optiml-tune. Returns its exit code: 0, or 1 for an error.
int runTuneCommand(int argc, char **argv);

} // namespace optiml

#endif
