//===- ReplayProcess.h - optiml-replay in its sandbox -----------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_REPLAYPROCESS_H
#define OPTIML_LIB_EVALUATE_VERIFY_REPLAYPROCESS_H

#include "ConcretePlan.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Workload/Replay.h"
#include "optiml/Workload/Signature.h"
#include "llvm/Support/Error.h"
#include <map>

namespace optiml {

/// Runs a plan for one captured launch of the workload in a folder.
emu::ReplayJob replayJob(const std::string &module, const std::string &workload, unsigned launch,
                         const ConcretePlan &plan);

/// Runs `job` in a child process that may read the module and the captured launch and write into `folder`, and else
/// nothing (Sandbox.h): a variant's text may come from a model. The result is in `folder`/result.json when it went
/// well. `seconds` and the options' memory limit it, beside what it limits itself.
llvm::Expected<ProcessResult> runReplay(const VerifyOptions &options, const emu::ReplayJob &job,
                                        const std::string &folder, double seconds);

/// Writes new contents for a launch's buffers below `directory` and returns buffer index -> absolute file name.
/// Buffers of unknown element type and variables keep their content. Empty when nothing would change.
llvm::Expected<std::map<unsigned, std::string>> freshInputs(const Workload &workload, const LaunchImage &launch,
                                                            uint64_t seed, FreshIntegers integers,
                                                            const std::string &directory,
                                                            FloatRange floats = FloatRange::Same);

} // namespace optiml

#endif
