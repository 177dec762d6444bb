//===- Run.cpp - running an emulated program under limits -----------------===//
#include "optiml/Emulator/Run.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace optiml;
using namespace optiml::emu;

/// The program runs elsewhere; names of ours must not depend on the folder.
static llvm::Expected<std::string> absolute(const std::string &path) {
  llvm::SmallString<256> result(path);
  if (std::error_code code = llvm::sys::fs::make_absolute(result))
    return makeError("{0}: {1}", path, code.message());
  return result.str().str();
}

#ifdef OPTIML_ASAN // the sanitizer's runtime reads /proc and starts processes
static constexpr bool sandboxWorks = false;
#else
static constexpr bool sandboxWorks = true;
#endif

static Sandbox sandboxOf(const ProcessOptions &process, const RunOptions &options) {
  Sandbox sandbox;
  sandbox.writable = options.writable;
  sandbox.writable.push_back(process.workingDirectory);
  for (const char *name : {envCapture, envFaultFile, envCopyLog})
    if (auto at = process.env.find(name); at != process.env.end())
      sandbox.writable.push_back(at->second);
  return sandbox;
}

llvm::Expected<ProcessResult> optiml::emu::runProgram(const std::string &executable, const RunOptions &options) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-run");
  if (!scratch)
    return scratch.takeError();
  ProcessOptions process;
  process.workingDirectory = scratch->file("run");
  if (std::error_code code = llvm::sys::fs::create_directory(process.workingDirectory))
    return makeError("{0}: {1}", process.workingDirectory, code.message());
  process.limits.seconds = options.seconds;
  process.limits.memoryBytes = options.memoryBytes
                                   ? options.memoryBytes
                                   : uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)) / 4 * 3;
  process.inheritOutput = options.inheritOutput;
  process.cancel = options.cancel;
  process.endsDescendants = true;
  process.env = options.env;
  if (!options.captureDir.empty()) {
    llvm::Expected<std::string> folder = absolute(options.captureDir);
    if (!folder)
      return folder.takeError();
    if (std::error_code code = llvm::sys::fs::create_directories(*folder))
      return makeError("{0}: {1}", *folder, code.message());
    process.env[envCapture] = patternOfPath(*folder);
  }
  if (!options.faultFile.empty()) {
    if (llvm::Error error = absolute(options.faultFile).moveInto(process.env[envFaultFile]))
      return error;
  }
  process.limits.outputBytes = options.outputBytes;
  if (options.sandboxed && sandboxWorks)
    process.sandbox = sandboxOf(process, options);
  llvm::Expected<std::string> program = absolute(executable);
  if (!program)
    return program.takeError();
  std::vector<std::string> argv = {*program};
  argv.insert(argv.end(), options.args.begin(), options.args.end());
  return runProcess(argv, process);
}
