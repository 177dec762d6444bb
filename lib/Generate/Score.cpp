//===- Score.cpp - how fast a program is predicted to be ------------------===//
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Evaluate/Predict/Predictor.h"
#include "optiml/Generate/Gate.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"

using namespace optiml;
using namespace optiml::gen;

llvm::Expected<double> optiml::gen::predictProgram(const std::string &text, const std::vector<std::string> &arguments,
                                                   double seconds, const Toolchain &toolchain) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-gen");
  if (!scratch)
    return scratch.takeError();
  std::string source = scratch->file("program.cu"), program = scratch->file("program");
  if (llvm::Error error = writeFileAtomically(source, text))
    return std::move(error);
  CompileOptions compile = CompileOptions::parse({"-std=c++17", "-arch=sm_90", source});
  if (llvm::Error error = emu::buildProgram(compile, {}, toolchain, emu::ModeBounds, program))
    return std::move(error);
  emu::RunOptions run;
  run.args = arguments;
  run.captureDir = scratch->file("workload");
  run.seconds = seconds;
  run.memoryBytes = uint64_t(4) << 30;
  run.outputBytes = 1 << 20;
  run.sandboxed = true;
  llvm::Expected<ProcessResult> result = emu::runProgram(program, run);
  if (!result)
    return result.takeError();
  if (!result->ok())
    return makeError("it {0}", result->describe());
  PredictorOptions options;
  std::string why;
  if (!Workload::read(run.captureDir, options.performance, why))
    return makeError(why);
  options.toolchain = toolchain;
  options.compile = compile;
  options.path = source;
  options.text = text;
  return predictOriginal(std::move(options));
}
