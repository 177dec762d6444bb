//===- Gate.cpp - what a program must pass before it is shown -------------===//
#include "optiml/Generate/Gate.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Emulator/RuntimeSettings.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include <future>

using namespace optiml;
using namespace optiml::gen;

using Step = GateReport::Step;

static llvm::Expected<ProcessResult> compileWithNvcc(const Toolchain &toolchain, const std::string &source,
                                                     const std::string &output) {
  ProcessOptions options;
  options.limits.seconds = 120;
  options.limits.memoryBytes = uint64_t(4) << 30;
  return runProcess({toolchain.nvcc, "-std=c++17", "-arch=sm_90", "-c", source, "-o", output}, options);
}

/// One run; an empty answer means that it passed.
static llvm::Expected<GateReport> runOnce(const std::string &program, const std::vector<std::string> &args, double seconds,
                                          const char *order) {
  emu::RunOptions run;
  run.args = args;
  run.seconds = seconds;
  run.memoryBytes = uint64_t(4) << 30;
  run.env[emu::envOrderSeed] = order;
  llvm::Expected<ProcessResult> result = emu::runProgram(program, run);
  if (!result)
    return result.takeError();
  std::string said = llvm::StringRef(result->out + result->err).take_front(4000).str();
  if (result->timedOut || result->overMemory || result->signal || result->exitCode == emu::faultExitCode)
    return GateReport{Step::Run, result->describe() + "\n" + said};
  if (result->exitCode || !llvm::StringRef(result->out).contains("PASSED"))
    return GateReport{Step::SelfCheck, result->describe() + "\n" + said};
  return GateReport{};
}

llvm::Expected<GateReport> optiml::gen::gateProgram(const std::string &text, const GateOptions &options,
                                                    const Toolchain &toolchain) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-gen");
  if (!scratch)
    return scratch.takeError();
  std::string source = scratch->file("program.cu"), program = scratch->file("program");
  if (llvm::Error error = writeFileAtomically(source, text))
    return std::move(error);
  std::future<llvm::Expected<ProcessResult>> nvcc;
  if (options.nvcc)
    nvcc = std::async(std::launch::async, [&] { return compileWithNvcc(toolchain, source, scratch->file("nvcc.o")); });

  auto emulate = [&]() -> llvm::Expected<GateReport> {
    CompileOptions compile = CompileOptions::parse({source});
    if (llvm::Error error = emu::buildProgram(compile, {}, toolchain, emu::ModeVerify, program))
      return GateReport{Step::Emulator, llvm::toString(std::move(error))};
    for (const std::vector<std::string> &args : options.runs)
      for (const char *order : {"0", "1"}) {
        llvm::Expected<GateReport> report = runOnce(program, args, options.seconds, order);
        if (!report || !report->passed())
          return report;
      }
    return GateReport{};
  };
  llvm::Expected<GateReport> report = emulate();
  if (options.nvcc) {
    llvm::Expected<ProcessResult> result = nvcc.get();
    if (!report || !report->passed()) {
      llvm::consumeError(result.takeError());
      return report;
    }
    if (!result)
      return result.takeError();
    if (!result->ok())
      return GateReport{Step::Nvcc, result->describe() + "\n" + llvm::StringRef(result->err).take_front(4000).str()};
  }
  return report;
}
