//===- Build.h - CUDA text to code that runs on this machine ----*- C++ -*-===//
#ifndef OPTIML_EMULATOR_BUILD_H
#define OPTIML_EMULATOR_BUILD_H

#include "optiml/Emulator/ABI.h"
#include "optiml/Frontend/CompileOptions.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>

namespace optiml::emu {

/// Compiles the device half of one file (or of `text` in its place) to a shared object that exports `optiml_module`,
/// for optiml-replay.
llvm::Error buildReplayModule(const std::string &path, const std::optional<std::string> &text,
                              const CompileOptions &options, const Toolchain &toolchain, uint32_t mode,
                              const std::string &outSharedObject);

/// Compiles and links the whole program of the command line in `options` (all its CUDA and host sources, objects and
/// libraries) against the emulator's CUDA runtime. `texts` replaces the content of sources by path.
llvm::Error buildProgram(const CompileOptions &options, const std::map<std::string, std::string> &texts,
                         const Toolchain &toolchain, uint32_t mode, const std::string &outExecutable);

} // namespace optiml::emu

#endif
