//===- ReplayProcess.h - optiml-replay in its sandbox -----------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_REPLAYPROCESS_H
#define OPTIML_LIB_EVALUATE_REPLAYPROCESS_H

#include "optiml/Emulator/Replay.h"
#include "optiml/Support/Subprocess.h"

namespace optiml {

/// Runs `job` in a child process that may read the module and the captured launch and write into `folder`, and else
/// nothing (Sandbox.h): a variant's text may come from a model. The result is in `folder`/result.json when it went well.
llvm::Expected<ProcessResult> runReplay(const std::string &replayProgram, const emu::ReplayJob &job,
                                        const std::string &folder, ProcessOptions process);

} // namespace optiml

#endif
