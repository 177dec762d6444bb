//===- Build.h - CUDA text to code that runs on this machine ----*- C++ -*-===//
#ifndef OPTIML_EMULATOR_BUILD_H
#define OPTIML_EMULATOR_BUILD_H

#include "optiml/Emulator/ABI.h"
#include "optiml/Frontend/CompileOptions.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// Compiles and links the whole program of the command line in `options` (all its CUDA and host sources, objects and
/// libraries) against the emulator's CUDA runtime. `texts` replaces the content of sources by path.
llvm::Error buildProgram(const CompileOptions &options, const std::map<std::string, std::string> &texts,
                         const Toolchain &toolchain, uint32_t mode, const std::string &outExecutable);

} // namespace optiml::emu

#endif
