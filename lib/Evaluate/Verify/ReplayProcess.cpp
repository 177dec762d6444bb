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

emu::ReplayJob optiml::replayJob(const std::string &module, const std::string &workload, unsigned launch,
                                 const ConcretePlan &plan) {
  emu::ReplayJob job;
  job.module = module;
  job.workload = workload;
  job.launch = launch;
  job.scratch = plan.scratch;
  job.steps = plan.steps;
  return job;
}

llvm::Expected<ProcessResult> optiml::runReplay(const VerifyOptions &options, const emu::ReplayJob &job,
                                                const std::string &folder, double seconds) {
  std::string error;
  if (!emu::writeJob(job, folder + "/job.json", error))
    return makeError(error);
  ProcessOptions process;
  process.limits.seconds = seconds;
  process.limits.memoryBytes = options.memoryBytes;
  process.limits.outputBytes = 1 << 16;
  process.cancel = options.cancel;
  if (sandboxed)
    process.sandbox = sandboxOf(job, folder);
  return runProcess({options.replayProgram, folder + "/job.json", folder + "/result.json"}, process);
}
