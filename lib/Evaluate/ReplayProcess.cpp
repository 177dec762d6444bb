//===- ReplayProcess.cpp - optiml-replay in its sandbox -------------------===//
#include "ReplayProcess.h"
#include "optiml/Support/Error.h"

using namespace optiml;

#ifdef OPTIML_ASAN // the sanitizer's runtime reads /proc and starts processes
static constexpr bool sandboxed = false;
#else
static constexpr bool sandboxed = true;
#endif

static Sandbox sandboxOf(const emu::ReplayJob &job, const std::string &folder) {
  Sandbox sandbox;
  sandbox.readable = {job.module, job.workload};
  for (const auto &[buffer, file] : job.inputs)
    sandbox.readable.push_back(file);
  sandbox.writable = {folder};
  sandbox.environment = {"OPTIML_EMU_MEMORY", "OPTIML_EMU_RACES", "OPTIML_EMU_WORKERS"};
  return sandbox;
}

llvm::Expected<ProcessResult> optiml::runReplay(const std::string &replayProgram, const emu::ReplayJob &job,
                                                const std::string &folder, ProcessOptions process) {
  std::string error;
  if (!emu::writeJob(job, folder + "/job.json", error))
    return makeError(error);
  if (sandboxed)
    process.sandbox = sandboxOf(job, folder);
  return runProcess({replayProgram, folder + "/job.json", folder + "/result.json"}, process);
}
