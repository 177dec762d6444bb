//===- BuildCommands.h - how a project's sources are compiled ---*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_BUILDCOMMANDS_H
#define OPTIML_LIB_DRIVER_BUILDCOMMANDS_H

#include "optiml/Frontend/CompileOptions.h"
#include "clang/Tooling/CompilationDatabase.h"
#include "llvm/Support/Error.h"
#include <set>
#include <string>
#include <vector>

namespace optiml {

/// Of the folder's compile_commands.json, or of what optiml-clang has logged there (CompileLog.h).
llvm::Expected<std::vector<clang::tooling::CompileCommand>> commandsOf(const std::string &folder);

/// Whether the text of the source at `path`, or a header of the user's that it includes, has one of these words: to be
/// quick about files that do not matter. Relative folders are seen from the current one.
bool mentions(const std::string &path, const std::string &text, const CompileOptions &compile,
              const std::set<std::string> &names);

} // namespace optiml

#endif
