//===- ProgramRun.cpp - runs of whole programs in the emulator ---------------===//
#include "ProgramRun.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace optiml;
using emu::ReplayFault;

bool ProgramOutcome::stopped() const {
  return process.signal || process.timedOut || process.overMemory || process.exitCode == emu::faultExitCode;
}

static llvm::Expected<std::vector<ReplayFault>> readFaults(const std::string &file) {
  std::vector<ReplayFault> faults;
  llvm::Expected<std::string> text = readFile(file);
  if (!text) {
    llvm::consumeError(text.takeError()); // none was written
    return faults;
  }
  for (llvm::StringRef line : llvm::split(*text, '\n')) {
    if (line.empty())
      continue;
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
    if (!value)
      return value.takeError();
    const llvm::json::Object *o = value->getAsObject();
    if (!o)
      continue;
    auto get = [&](const char *key) { return o->getString(key).value_or("").str(); };
    faults.push_back(
        {get("kind"), get("message"), get("file"), uint32_t(o->getInteger("line").value_or(0)), get("kernel")});
  }
  return faults;
}

void ProgramRunner::setFreshKernels(const std::set<std::string> &symbols) { freshKernels = llvm::join(symbols, ","); }

emu::RunOptions ProgramRunner::optionsFor(const Arguments &arguments, const std::string &folder) const {
  emu::RunOptions run;
  run.args = arguments;
  run.memoryBytes = options.verify.memoryBytes;
  run.cancel = options.verify.cancel;
  run.sandboxed = options.sandboxed;
  llvm::sys::fs::create_directory(folder); // what it writes lies apart from what other runs have written
  run.writable = {folder};
  run.env[emu::envCoverage] = folder + "/coverage";
  run.env[emu::envWorkers] = "1"; // results do not depend on the machine
  return run;
}

// For arguments that were looked for and make a large program.
static constexpr double longSeconds = 30;

ProgramInput optiml::typed(ProgramInput input, const ProgramOutcome &original) {
  if (input.host)
    input.types = original.log.inputTypes;
  return input;
}

double ProgramRunner::slowdown() const {
  constexpr double least = 0.2; // seconds that tell something
  return worked < least ? 1 : std::clamp(waited / worked, 1.0, 4.0);
}

llvm::Expected<ProcessResult> ProgramRunner::start(const std::string &program, emu::RunOptions &run, double seconds) {
  run.seconds = std::min(options.seconds, seconds * slowdown());
  llvm::Expected<ProcessResult> process = emu::runProgram(program, run);
  if (!process)
    return process;
  if (process->cancelled)
    return makeError("verification was cancelled");
  waited += process->seconds;
  worked += process->cpuSeconds;
  return process;
}

llvm::Expected<ProgramOutcome> ProgramRunner::run(const std::string &program, const ProgramInput &input,
                                                  uint64_t order) {
  const unsigned number = counter++;
  const std::string folder = dir.file("run" + std::to_string(number)), log = folder + "/log",
                    faults = folder + "/faults", types = folder + "/types";
  emu::RunOptions run = optionsFor(input.arguments, folder);
  double seconds = number == 0 ? options.firstSeconds : input.given ? options.seconds : 3 + 10 * slowest.load();
  run.faultFile = faults;
  run.env[emu::envCopyLog] = log;
  run.env[emu::envRaces] = "report";
  run.env[emu::envShift] = input.shift;
  if (input.late)
    run.env[emu::envLate] = "1";
  if (input.otherFill)
    run.env[emu::envOtherFill] = "1";
  if (input.otherMemory)
    run.env[emu::envOtherMemory] = "1";
  if (!input.rounding.empty())
    run.env[emu::envRounding] = input.rounding;
  if (input.quick)
    seconds = longSeconds;
  if (input.seconds > 0)
    seconds = input.seconds;
  if (order)
    run.env[emu::envOrderSeed] = std::to_string(order);
  if (input.fresh) {
    run.env[emu::envFresh] = std::to_string(input.fresh);
    run.env[emu::envFreshHost] = input.host ? std::string(nameOf(*input.host)) : "";
    run.env[emu::envFreshKernels] = freshKernels;
    if (!input.types.empty()) {
      if (llvm::Error error = writeFileAtomically(types, input.types))
        return std::move(error);
      run.env[emu::envFreshTypes] = types;
    }
    run.env[emu::envFreshIntegers] = nameOf(input.integers);
  }
  llvm::Expected<ProcessResult> process = start(program, run, seconds);
  if (!process)
    return process.takeError();
  if (input.given)
    slowest = std::max(slowest.load(), process->cpuSeconds);
  ProgramOutcome outcome;
  outcome.program = program;
  outcome.input = input;
  outcome.order = order;
  outcome.process = std::move(*process);
  if (llvm::Error error = readCopyLog(log).moveInto(outcome.log))
    return error;
  if (llvm::Error error = readFaults(faults).moveInto(outcome.faults))
    return error;
  if (llvm::Error error = readCoverage(run.env[emu::envCoverage]).moveInto(outcome.coverage))
    return error;
  llvm::sys::fs::remove_directories(folder);
  return outcome;
}

llvm::Expected<ProcessResult> ProgramRunner::runProbe(const std::string &program, const Arguments &arguments,
                                                      const ArgumentExplorer::ProbeOptions &how,
                                                      const std::string &shift, ProgramCoverage &coverage) {
  const std::string folder = dir.file("run" + std::to_string(counter++));
  emu::RunOptions run = optionsFor(arguments, folder);
  run.env[emu::envShift] = shift;
  run.env[emu::envSkipKernel] = how.hostOnly ? "*" : "";
  llvm::Expected<ProcessResult> process = start(program, run, how.seconds);
  if (!process)
    return process;
  llvm::Error error = readCoverage(run.env[emu::envCoverage]).moveInto(coverage);
  llvm::sys::fs::remove_directories(folder);
  if (error)
    return std::move(error);
  return process;
}

bool ProgramRunner::endedWell(const ProcessResult &process) const {
  return !process.signal && !process.timedOut && !process.overMemory && process.exitCode == exitCode;
}

llvm::Expected<ProbeResult> ProgramRunner::probe(const std::string &program, const Arguments &arguments,
                                                 const ArgumentExplorer::ProbeOptions &how, const std::string &shift) {
  ProgramCoverage coverage;
  llvm::Expected<ProcessResult> process = runProbe(program, arguments, how, shift, coverage);
  if (!process)
    return process.takeError();
  ProbeResult result{std::nullopt, process->cpuSeconds, process->timedOut};
  if (endedWell(*process))
    result.coverage = std::move(coverage);
  return result;
}

llvm::Expected<std::string> ProgramRunner::signature(const std::string &program, const Arguments &arguments) {
  ProgramCoverage coverage;
  llvm::Expected<ProcessResult> process = runProbe(program, arguments, {}, "", coverage);
  if (!process)
    return process.takeError();
  if (!endedWell(*process))
    return "";
  std::string result = process->out + "/";
  for (const auto &[number, c] : coverage.conditions)
    for (const ConditionSide &side : c.sides)
      if (c.function != "main")
        result += llvm::formatv("{0},{1},{2},", side.nearness, side.left, side.right).str();
  return result;
}
