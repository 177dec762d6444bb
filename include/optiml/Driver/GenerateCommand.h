//===- GenerateCommand.h - what optiml-gen does -----------------*- C++ -*-===//
#ifndef OPTIML_DRIVER_GENERATECOMMAND_H
#define OPTIML_DRIVER_GENERATECOMMAND_H

namespace optiml {

/// The whole of optiml-gen. Returns its exit code: 0 written, 1 an error, 2 not offered or not clear.
int runGenerateCommand(int argc, char **argv);

} // namespace optiml

#endif
