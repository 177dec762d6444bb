//===- GuardedCompile.h - compiling a stranger's text, first elsewhere -*- C++ -*-===//
//
// Text from a language model may be small and yet keep a compiler busy for ever, fill its memory, or make it run out of
// stack. Whatever this program would do with such a text in its own process happens first in a child under limits; only
// what that child survives is looked at here.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_GUARDEDCOMPILE_H
#define OPTIML_LIB_DRIVER_GUARDEDCOMPILE_H

#include "optiml/Frontend/Toolchain.h"
#include "llvm/ADT/ArrayRef.h"
#include <atomic>
#include <string>
#include <vector>

namespace optiml {

struct GuardedCompile {
  std::string program;                ///< this one
  std::string path;                   ///< of the user's file; `text` stands in its place
  std::vector<std::string> arguments; ///< of nvcc
  const std::atomic<bool> *cancel = nullptr;
  double seconds = 30;
  uint64_t memoryBytes = uint64_t(4) << 30;

  /// Parses, reads and compiles `text` for the emulator in a child. An error says why it must not be tried here;
  /// mistakes in the text are none.
  llvm::Error operator()(const std::string &text) const;
};

/// The first argument of the child; the others are the text's file, the path, and nvcc's arguments.
inline constexpr const char *guardedCompileFlag = "--optiml-guarded-compile";

/// What the child does. Its exit code is 0 whatever it finds.
int compileGuarded(const Toolchain &toolchain, llvm::ArrayRef<std::string> arguments);

} // namespace optiml

#endif
