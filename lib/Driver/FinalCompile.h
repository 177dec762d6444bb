//===- FinalCompile.h - handing the result to nvcc --------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_FINALCOMPILE_H
#define OPTIML_LIB_DRIVER_FINALCOMPILE_H

#include "optiml/Frontend/Toolchain.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <string>
#include <vector>

namespace optiml {

/// Runs nvcc with the user's own command line. Its output is passed through, or goes into `output`. Returns its exit
/// code. Raising `cancel` stops it, which is an error.
llvm::Expected<int> compileOriginal(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                    std::string *output = nullptr, const std::atomic<bool> *cancel = nullptr);

/// The same with `text` in place of the content of `path`: includes still resolve beside the user's file, objects get
/// the names they would have got, and dependency files name the user's file, and `dependsOn` where that is not empty.
llvm::Expected<int> compileReplaced(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                    const std::string &path, const std::string &text, std::string *output = nullptr,
                                    const std::atomic<bool> *cancel = nullptr, const std::string &dependsOn = "");

} // namespace optiml

#endif
