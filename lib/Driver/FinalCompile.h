//===- FinalCompile.h - handing the result to nvcc --------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_FINALCOMPILE_H
#define OPTIML_LIB_DRIVER_FINALCOMPILE_H

#include "optiml/Frontend/Toolchain.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <string>
#include <vector>

namespace optiml {

/// nvcc's arguments without those that say where its output and dependency files go.
std::vector<std::string> withoutOutputs(const std::vector<std::string> &arguments);

/// What nvcc prints.
struct NvccOutput {
  std::string out, err;
};

/// Runs nvcc with the user's own command line. Its output is passed through, or goes into `output`. Returns its exit
/// code. Raising `cancel` stops it, which is an error.
llvm::Expected<int> compileOriginal(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                    NvccOutput *output = nullptr, const std::atomic<bool> *cancel = nullptr);

/// The same as the end of this program: an error goes to standard error, and counts as exit code 1.
int compileAsGiven(const Toolchain &toolchain, const std::vector<std::string> &arguments);

/// Whether another file may take the place of this one: it is a regular file and no link, or is not there.
bool canBeReplaced(const std::string &path);

/// A source of the command line, and what stands in place of its content.
struct Replacement {
  std::string path, text;
};

/// As compileOriginal, with other texts in place of sources, which lie in one folder: includes still resolve beside the
/// user's files, objects get the names they would have got, and dependency files name the user's files, and `dependsOn`
/// where that is not empty.
llvm::Expected<int> compileReplaced(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                    const std::vector<Replacement> &sources, NvccOutput *output = nullptr,
                                    const std::atomic<bool> *cancel = nullptr, const std::string &dependsOn = "");

/// What nvcc said when it built a program is kept beside it.
std::string messagesOf(const std::string &executable);
/// Puts a program that was built of the same sources with the same arguments, but for its output's place, where nvcc
/// would have put it, and prints what nvcc said. False where nvcc would do something else, or more than that.
llvm::Expected<bool> putProgram(const std::vector<std::string> &arguments, const std::string &executable);

} // namespace optiml

#endif
