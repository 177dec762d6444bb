//===- RecordCommand.h - records the launches of a command ------*- C++ -*-===//
#ifndef OPTIML_DRIVER_RECORDCOMMAND_H
#define OPTIML_DRIVER_RECORDCOMMAND_H

namespace optiml {

/// The whole of optiml-record. Returns its exit code: that of the command, or 1 where nothing was recorded.
int runRecordCommand(int argc, char **argv);

} // namespace optiml

#endif
