//===- GuardedCompile.cpp - compiling a stranger's text, first elsewhere --===//
#include "GuardedCompile.h"
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/thread.h"

using namespace optiml;

llvm::Error GuardedCompile::operator()(const std::string &text) const {
  auto folder = TempDir::create("optiml-guarded");
  if (!folder)
    return folder.takeError();
  std::string file = folder->file("text.cu");
  if (llvm::Error e = writeFileAtomically(file, text))
    return e;
  std::vector<std::string> argv = {program, guardedCompileFlag, file, path};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  ProcessOptions options;
  options.limits.seconds = seconds;
  options.limits.memoryBytes = memoryBytes;
  options.limits.outputBytes = 1 << 16;
  options.env = {{"TMPDIR", folder->path()}}; // what a child that is killed leaves behind
  options.cancel = cancel;
  auto child = runProcess(argv, options);
  if (!child)
    return child.takeError();
  if (child->ok())
    return llvm::Error::success();
  // Models are told; nothing here may differ from run to run.
  return makeError(child->cancelled  ? "cancelled"
                   : child->timedOut ? "compiling it takes too long (constant expressions, templates, unrolled loops?)"
                   : child->overMemory
                       ? "compiling it takes too much memory (constant expressions, templates, large arrays?)"
                       : "the compiler crashes on it (is it nested very deeply, or very large?)");
}

int optiml::compileGuarded(const Toolchain &toolchain, llvm::ArrayRef<std::string> arguments) {
  auto text = readFile(arguments.front());
  auto folder = TempDir::create("optiml-guarded");
  if (!text || !folder) {
    llvm::consumeError(text.takeError());
    llvm::consumeError(folder.takeError());
    return 1;
  }
  auto work = [&] {
    CompileOptions options = CompileOptions::parse(arguments.drop_front(2).vec());
    const std::string &path = arguments[1];
    auto program = Program::parse(path, *text, options, toolchain, View::Device);
    if (!program) // the search will see the same, and say it
      return llvm::consumeError(program.takeError());
    auto space = KernelSpace::create(
        **program, [](const KernelDecl &) { return true; }, [](const KernelDecl &) { return LaunchHints(); });
    if (space)
      llvm::consumeError((*space)->root().takeError());
    else
      llvm::consumeError(space.takeError());
    llvm::consumeError(emu::buildReplayModules(
        path, *text, options, toolchain,
        {{emu::ModeVerify, folder->file("verify.so")}, {emu::ModeTrace, folder->file("trace.so")}}));
  };
  // With less stack than any thread of the search has.
  llvm::thread thread(std::optional<unsigned>(2 << 20), work);
  thread.join();
  return 0;
}
