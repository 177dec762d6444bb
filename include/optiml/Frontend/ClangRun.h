//===- ClangRun.h - Clang in this process -----------------------*- C++ -*-===//
//
// Runs a Clang FrontendAction over one CUDA file, or over replacement text for it: relative #includes resolve beside
// the original file, and messages name it. Diagnostics are captured, never printed. When the same file is parsed again
// (variants of a program differ behind their #include block), the block is precompiled in memory and reused.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_CLANGRUN_H
#define OPTIML_FRONTEND_CLANGRUN_H

#include "optiml/Frontend/CompileOptions.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <optional>
#include <string>

namespace clang {
class FrontendAction;
}

namespace optiml {

/// The real files, and over them those of PrecompiledIncludes.h, which exist only in memory.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> clangFileSystem();
/// Clang ignores __managed__ with a warning: host and device would each have a variable of their own.
inline bool ignoresManaged(llvm::StringRef message) { return message.contains("'managed' attribute ignored"); }
constexpr const char *managedIsUnsupported = "__managed__ variables are not supported";

/// The driver's command line up to the source file: flags, and the declarations that Clang's CUDA headers lack. The
/// same for whatever is done with the file, so that precompiled headers serve all of it.
std::vector<std::string> clangCommand(const CompileOptions &options, const Toolchain &toolchain, View view);

struct ClangRun {
  std::string path;                ///< the file, as the user named it
  std::optional<std::string> text; ///< replaces the file's content
  View view = View::Device;
  std::vector<std::string> languageArgs; ///< further driver options that decide what the text means
  std::vector<std::string> codeGenArgs;  ///< and those for the code that is made of it
  bool defineLibdevice = false;          ///< define __nv_* by the host's mathematics instead of leaving them declared
  bool mayPrecompile = true;             ///< precompile the #include block once the same file is parsed a second time
  bool warningsMatter = true;            ///< reject what Clang ignores with a warning although it changes the program
  std::string outputFile;                ///< for actions that write one
};

/// Fails with "file:line:column: message" lines when Clang reports errors. Thread-safe.
llvm::Error runClang(const ClangRun &run, const CompileOptions &options, const Toolchain &toolchain,
                     clang::FrontendAction &action);

} // namespace optiml

#endif
