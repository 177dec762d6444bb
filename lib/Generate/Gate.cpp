//===- Gate.cpp - what a program must pass before it is shown -------------===//
#include "optiml/Generate/Gate.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/CopyRecord.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "llvm/Support/FileSystem.h"
#include <fstream>
#include <future>

using namespace optiml;
using namespace optiml::gen;

using Step = GateReport::Step;

static constexpr uint64_t memoryLimit = uint64_t(4) << 30;
static constexpr unsigned alteredPlaces = 12;
static constexpr size_t shownBytes = 4000;

static ProcessOptions compilerLimits() {
  ProcessOptions options;
  options.limits.seconds = 120;
  options.limits.memoryBytes = memoryLimit;
  options.limits.outputBytes = 1 << 20;
  options.limits.fileBytes = uint64_t(512) << 20;
  return options;
}

static llvm::Expected<ProcessResult> compileWithNvcc(const Toolchain &toolchain, const std::string &source,
                                                     const std::string &output) {
  return runProcess({toolchain.nvcc, "-std=c++17", "-arch=sm_90", "-c", source, "-o", output}, compilerLimits());
}

/// What a child said of itself, without what changes from run to run.
static std::string describe(const ProcessResult &result, llvm::StringRef said) {
  std::string how = result.timedOut ? "it ran longer than its limit and was stopped" : result.describe();
  return how + "\n" + said.take_front(shownBytes).str();
}

namespace {

class Gate {
public:
  Gate(const GateOptions &options, const Toolchain &toolchain, TempDir scratch)
      : options(options), toolchain(toolchain), scratch(std::move(scratch)) {}
  llvm::Expected<GateReport> run(const std::string &text);

private:
  llvm::Expected<GateReport> emulate();
  llvm::Expected<GateReport> build();
  llvm::Expected<ProcessResult> start(const std::vector<std::string> &args, std::map<std::string, std::string> env);
  llvm::Expected<GateReport> judge(const std::vector<std::string> &args, std::map<std::string, std::string> env);
  bool passes(const ProcessResult &result) const {
    return result.ok() && llvm::StringRef(result.out).contains(options.verdict);
  }
  llvm::Expected<GateReport> leaveOutKernels();
  llvm::Expected<GateReport> alterResults();
  llvm::Expected<uint64_t> copiedBytes();

  const GateOptions &options;
  const Toolchain &toolchain;
  TempDir scratch;
  std::string source, program;
};

} // namespace

/// In a child process where the text is a stranger's: it may make the compiler run for ever or out of memory.
llvm::Expected<GateReport> Gate::build() {
  if (!options.isWritten) {
    CompileOptions compile = CompileOptions::parse({source});
    if (llvm::Error error = emu::buildProgram(compile, {}, toolchain, emu::ModeVerify, program))
      return GateReport{Step::Emulator, llvm::toString(std::move(error))};
    return GateReport{};
  }
  llvm::Expected<ProcessResult> result = runProcess(
      {toolchain.libDir + "/../bin/optiml-run", "--check=verify", "--no-run", source, "-o", program}, compilerLimits());
  if (!result)
    return result.takeError();
  return result->ok() ? GateReport{} : GateReport{Step::Emulator, describe(*result, result->err)};
}

llvm::Expected<ProcessResult> Gate::start(const std::vector<std::string> &args,
                                          std::map<std::string, std::string> env) {
  emu::RunOptions run;
  run.args = args;
  run.seconds = options.seconds;
  run.memoryBytes = memoryLimit;
  run.outputBytes = 1 << 20;
  run.env = std::move(env);
  run.sandboxed = true;
  return emu::runProgram(program, run);
}

llvm::Expected<GateReport> Gate::judge(const std::vector<std::string> &args, std::map<std::string, std::string> env) {
  llvm::Expected<ProcessResult> result = start(args, std::move(env));
  if (!result)
    return result.takeError();
  std::string said = llvm::StringRef(result->out).take_front(shownBytes / 2).str() + result->err;
  if (result->timedOut || result->overMemory || result->signal || result->exitCode == emu::faultExitCode)
    return GateReport{Step::Run, describe(*result, said)};
  if (!passes(*result))
    return GateReport{Step::SelfCheck, describe(*result, said)};
  return GateReport{};
}

llvm::Expected<GateReport> Gate::leaveOutKernels() {
  for (const std::string &kernel : options.kernels) {
    llvm::Expected<ProcessResult> result = start(options.runs[0], {{emu::envSkipKernel, kernel}});
    if (!result)
      return result.takeError();
    if (passes(*result))
      return GateReport{
          Step::Trial,
          llvm::formatv(
              "its self-check proves nothing: it says {0} also when kernel {1} is not run. Either its result is "
              "not compared (or a comparison with NaN counts as equal), or the kernel is not "
              "launched at the sizes that are tried, or it is not needed",
              options.verdict, kernel)};
  }
  return GateReport{};
}

/// By the copy log. What it says of itself only matters for where results are altered.
llvm::Expected<uint64_t> Gate::copiedBytes() {
  std::string log = scratch.file("copies");
  std::ofstream(log).flush(); // it is there before the sandbox asks for it
  llvm::Expected<ProcessResult> result = start(options.runs[0], {{emu::envCopyLog, log}});
  if (!result)
    return result.takeError();
  std::ifstream file(log, std::ios::binary);
  uint64_t bytes = 0;
  for (emu::CopyRecord record; file.read(reinterpret_cast<char *>(&record), sizeof record);) {
    if (record.magic != emu::CopyRecord::expectedMagic || record.dataBytes > memoryLimit || record.twins > memoryLimit)
      break;
    if (record.kind == emu::CopyRecord::Copy)
      bytes += record.dataBytes;
    file.seekg(std::streamoff(record.kernelBytes) + record.bufferBytes + std::streamoff(record.dataBytes) +
                   std::streamoff(32 * record.twins),
               std::ios::cur);
  }
  return bytes;
}

llvm::Expected<GateReport> Gate::alterResults() {
  llvm::Expected<uint64_t> bytes = copiedBytes();
  if (!bytes)
    return bytes.takeError();
  if (!*bytes)
    return GateReport{Step::Trial,
                      "it copies no results back from the device (cudaMemcpy), so that nothing can be checked"};
  GateReport report;
  unsigned triedNaN = 0, noticedNaN = 0; // an integer may have been all ones before; not all of them
  for (unsigned i = 0; i < alteredPlaces; ++i) {
    uint64_t place = *bytes * (2 * i + 1) / (2 * alteredPlaces);
    llvm::Expected<ProcessResult> result = start(options.runs[0], {{emu::envAlterCopy, std::to_string(place)}});
    if (!result)
      return result.takeError();
    ++report.altered;
    if (passes(*result))
      continue;
    ++report.noticed;
    if (triedNaN < 3) {
      llvm::Expected<ProcessResult> notNumber =
          start(options.runs[0], {{emu::envAlterCopy, std::to_string(place)}, {emu::envAlterToNaN, "1"}});
      if (!notNumber)
        return notNumber.takeError();
      ++triedNaN;
      noticedNaN += !passes(*notNumber);
    }
  }
  if (report.noticed * 4 < report.altered) {
    report.step = Step::Trial;
    report.why = llvm::formatv(
        "its self-check compares too little: results were altered at {0} places, one at a time, and it noticed {1}. "
        "Compare every element of the results",
        report.altered, report.noticed);
  } else if (triedNaN && !noticedNaN) {
    report.step = Step::Trial;
    report.why =
        "its self-check lets NaN pass: a comparison must be written so that NaN fails, !(difference <= tolerance)";
  }
  return report;
}

llvm::Expected<GateReport> Gate::emulate() {
  llvm::Expected<GateReport> report = build();
  if (!report || !report->passed())
    return report;
  for (const std::vector<std::string> &args : options.runs)
    for (const char *order : {"0", "1"}) {
      report = judge(args, {{emu::envOrderSeed, order}});
      if (!report || !report->passed())
        return report;
    }
  if (options.kernels.empty())
    return report;
  report = leaveOutKernels();
  return report && report->passed() ? alterResults() : std::move(report);
}

llvm::Expected<GateReport> Gate::run(const std::string &text) {
  source = scratch.file("program.cu");
  program = scratch.file("program");
  if (llvm::Error error = writeFileAtomically(source, text))
    return std::move(error);
  std::future<llvm::Expected<ProcessResult>> nvcc;
  if (options.nvcc)
    nvcc = std::async(std::launch::async, [&] { return compileWithNvcc(toolchain, source, scratch.file("nvcc.o")); });
  llvm::Expected<GateReport> report = emulate();
  if (!options.nvcc)
    return report;
  llvm::Expected<ProcessResult> result = nvcc.get();
  if (!report || !report->passed()) {
    llvm::consumeError(result.takeError());
    return report;
  }
  if (!result)
    return result.takeError();
  if (!result->ok())
    return GateReport{Step::Nvcc, describe(*result, result->err)};
  return report;
}

llvm::Expected<GateReport> optiml::gen::gateProgram(const std::string &text, const GateOptions &options,
                                                    const Toolchain &toolchain) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-gen");
  if (!scratch)
    return scratch.takeError();
  return Gate(options, toolchain, std::move(*scratch)).run(text);
}
