//===- Build.h - CUDA text to code that runs on this machine ----*- C++ -*-===//
#ifndef OPTIML_EMULATOR_BUILD_H
#define OPTIML_EMULATOR_BUILD_H

#include "optiml/Emulator/ABI.h"
#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace optiml::emu {

/// Compiles the device half of one file (or of `text` in its place) to a shared object that exports `optiml_module`,
/// for optiml-replay.
llvm::Error buildReplayModule(const std::string &path, const std::optional<std::string> &text,
                              const CompileOptions &options, const Toolchain &toolchain, uint32_t mode,
                              const std::string &outSharedObject);

/// The same for several modes at once: the file is parsed once. `outputs`: mode and shared object.
llvm::Error buildReplayModules(const std::string &path, const std::optional<std::string> &text,
                               const CompileOptions &options, const Toolchain &toolchain,
                               const std::vector<std::pair<uint32_t, std::string>> &outputs);

/// Builds of one program in several modes. What Clang makes of its sources is kept from each to the next, so that a
/// source is parsed once for the device, and once for the host with every kind of marks. For one thread at a time.
class ProgramBuilder {
public:
  /// The program is that of the command line in `options`: all its CUDA and host sources, objects and libraries.
  /// `texts` replaces the content of sources by path.
  ProgramBuilder(const CompileOptions &options, std::map<std::string, std::string> texts, const Toolchain &toolchain)
      : options(options), texts(std::move(texts)), toolchain(toolchain) {}
  /// Compiles and links against the emulator's CUDA runtime.
  llvm::Error build(uint32_t mode, const std::string &outExecutable);

private:
  llvm::Expected<std::unique_ptr<llvm::Module>> deviceCode(const std::string &path, llvm::LLVMContext &context);
  /// The object file of a source's host code.
  llvm::Expected<std::string> hostObject(const std::string &path, uint32_t mode, llvm::LLVMContext &context);
  /// That of a source without CUDA.
  llvm::Expected<std::string> plainObject(const std::string &path);
  std::optional<std::string> textOf(const std::string &path) const;

  const CompileOptions options;
  const std::map<std::string, std::string> texts;
  const Toolchain toolchain;
  std::optional<TempDir> scratch;
  std::map<std::string, std::string> device;                     ///< bitcode by path
  std::map<std::pair<std::string, uint32_t>, std::string> hosts; ///< object files by path and what marks the mode asks
  unsigned number = 0;
};

/// One build of a program.
llvm::Error buildProgram(const CompileOptions &options, const std::map<std::string, std::string> &texts,
                         const Toolchain &toolchain, uint32_t mode, const std::string &outExecutable);

} // namespace optiml::emu

#endif
