//===- Run.cpp - running an emulated program under limits -----------------===//
#include "optiml/Emulator/Run.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "llvm/ADT/STLExtras.h"
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

/// Copies of the files that arguments name by their places in the current folder: so that the program finds them, and
/// changes none.
static llvm::Error bringInputs(const std::vector<std::string> &arguments, const std::string &folder) {
  constexpr uint64_t largest = 64 << 20; // bytes: each run makes a copy
  namespace fs = llvm::sys::fs;
  namespace path = llvm::sys::path;
  for (const std::string &argument : arguments) {
    uint64_t size = 0;
    const bool isOutside = llvm::is_contained(llvm::make_range(path::begin(argument), path::end(argument)), "..");
    if (argument.empty() || path::is_absolute(argument) || isOutside || !fs::is_regular_file(argument) ||
        fs::file_size(argument, size) || size > largest)
      continue;
    const std::string copy = folder + "/" + argument;
    if (std::error_code code = fs::create_directories(path::parent_path(copy)))
      return makeError("{0}: {1}", path::parent_path(copy), code.message());
    if (std::error_code code = fs::copy_file(argument, copy))
      return makeError("{0}: {1}", copy, code.message());
  }
  return llvm::Error::success();
}

llvm::Expected<ProcessResult> optiml::emu::runProgram(const std::string &executable, const RunOptions &options) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-run");
  if (!scratch)
    return scratch.takeError();
  ProcessOptions process;
  process.workingDirectory = scratch->file("run");
  if (std::error_code code = llvm::sys::fs::create_directory(process.workingDirectory))
    return makeError("{0}: {1}", process.workingDirectory, code.message());
  if (llvm::Error error = bringInputs(options.args, process.workingDirectory))
    return error;
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
