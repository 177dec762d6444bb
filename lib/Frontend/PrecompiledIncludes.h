//===- PrecompiledIncludes.h - CUDA's headers, parsed once a machine -*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_PRECOMPILEDINCLUDES_H
#define OPTIML_LIB_FRONTEND_PRECOMPILEDINCLUDES_H

#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/PrecompiledPreamble.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <memory>
#include <string>

namespace optiml {

/// Puts a precompiled header in the place of the files that every CUDA file begins with: CUDA's and OptiML's, which the
/// command line includes, and those of the system that `text` itself includes with <> before anything else. It lies in
/// the user's cache folder, where all processes share it; the first one that needs it makes it, and with the lines of
/// `text` the second one. `flags` are those of the command line that decide what a text means. Where the user includes
/// a file by a flag, without a cache folder, or when anything fails, nothing changes: the files are parsed, and the
/// parse tells what is wrong.
void precompileIncludes(clang::CompilerInvocation &invocation, llvm::ArrayRef<std::string> flags, llvm::StringRef text,
                        llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs);

/// What nvcc offers and Clang's headers lack (__stcg and relatives): declarations.cuh.
extern const char *const missingDeclarations;
/// libdevice's functions (__nv_*) for code that runs on the host: libdevice.cuh.
extern const char *const libdeviceDefinitions;
/// Where it seems to lie: in memory, beside the real files. It is in no precompiled header.
constexpr const char *libdeviceFile = "/optiml/libdevice.cuh";

/// The precompiled leading directives of `buffer` for this invocation, from the process's cache; null when there is
/// none yet and this is the first request, or when they cannot be precompiled. `key` names the file,
/// view and flags.
std::shared_ptr<clang::PrecompiledPreamble> findPreamble(const std::string &key,
                                                         const clang::CompilerInvocation &invocation,
                                                         const llvm::MemoryBuffer &buffer,
                                                         llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs);

} // namespace optiml

#endif
