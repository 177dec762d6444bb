//===- Preamble.h - the #include block of a file, parsed once ---*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_PREAMBLE_H
#define OPTIML_LIB_FRONTEND_PREAMBLE_H

#include "clang/Frontend/PrecompiledPreamble.h"
#include <memory>
#include <string>

namespace optiml {

/// The precompiled leading directives of `buffer` for this invocation, from the process's cache; null when there is
/// none yet and this is the first request (`eager` false), or when they cannot be precompiled. `key` names the file,
/// view and flags.
std::shared_ptr<clang::PrecompiledPreamble>
findPreamble(const std::string &key, const clang::CompilerInvocation &invocation, const llvm::MemoryBuffer &buffer,
             llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs, bool eager);

} // namespace optiml

#endif
