//===- CompileLog.h - the compilations of a build ---------------*- C++ -*-===//
//
// Builds that write no compile_commands.json (Make, setup.py) leave one file a compilation in a folder, which
// optiml-tune reads in its place. Uses POSIX only.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_COMPILELOG_H
#define OPTIML_DRIVER_COMPILELOG_H

#include <string>
#include <vector>

namespace optiml {

/// The folder, a variable of the environment.
constexpr const char *envCompileLog = "OPTIML_COMPILE_LOG";
/// What the names of its files end with.
constexpr const char *compileLogEnd = ".compile.json";

/// Writes an entry of a compilation database for each CUDA source among nvcc's arguments, one file a compilation; the
/// same compilation again takes its place. False, and `error`, when it cannot.
bool logCompile(const std::string &folder, const std::vector<std::string> &arguments, std::string &error);

} // namespace optiml

#endif
