//===- ReplayRun.h - running one replay job in this process -----*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_REPLAYRUN_H
#define OPTIML_LIB_EMULATOR_RUNTIME_REPLAYRUN_H

#include "optiml/Workload/Replay.h"

namespace optiml::emu {

/// Runs the job. Once a process. Faults are in the result; a kernel that crashes or outlasts the job's limit ends the
/// process after writing the result to `resultPath`, but not once this has returned. What cannot even begin is a fault
/// of kind "launch".
ReplayResult runReplay(const ReplayJob &job, const std::string &resultPath);

} // namespace optiml::emu

#endif
