//===- CompileOptions.h - an nvcc command line, understood ------*- C++ -*-===//
//
// Splits an nvcc command line into what Clang needs to parse the same program (include paths, macros, standard,
// architecture) and what only nvcc cares for. "Too hard" is an answer: then nvcc runs unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_COMPILEOPTIONS_H
#define OPTIML_FRONTEND_COMPILEOPTIONS_H

#include "optiml/Frontend/Toolchain.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml {

enum class View { Host, Device };

struct CompileOptions {
  std::vector<std::string> nvccArgs;      ///< the whole command line, and what its files of options hold
  std::vector<std::string> inputs;        ///< CUDA sources (.cu, or any after -x cu), in order
  std::vector<std::string> hostInputs;    ///< C and C++ sources
  std::vector<std::string> linkInputs;    ///< objects, archives and whatever else goes to the linker
  std::string output;                     ///< -o, or empty
  bool compileOnly = false;               ///< -c, -dc, -shared, …: no executable comes out
  std::string tooHard;                    ///< non-empty: why only the real nvcc should handle this command line
  std::vector<std::string> frontendFlags; ///< -I -isystem -D -U -std= -include …, in Clang's spelling
  std::vector<std::string> libraries;     ///< -l and -L flags, for linking the emulated program
  unsigned arch = 90;             ///< compute capability × 10 of the first -arch/-gencode; 90 when none is given
  std::string archName = "sm_90"; ///< in Clang's spelling, e.g. "sm_90a"
  std::vector<unsigned> archs;    ///< all that are named, each once
  bool everyArch = false;         ///< -arch=all, -arch=all-major
  unsigned leastArch = 0;         ///< the least compute capability × 10 that is compiled for; 0 when nvcc chooses
  bool nativeArch = false;        ///< -arch=native: becomes known when it is known where the program runs
  bool relocatable = false;       ///< -rdc=true, -dc: device code of several sources is linked together
  bool fastMath = false;          ///< --use_fast_math
  bool deviceDebug = false;       ///< -G

  /// Understands the command line (argv without the program's name and without OptiML's own flags).
  static CompileOptions parse(const std::vector<std::string> &args);

  /// Chooses an architecture whose machine code runs on a GPU of compute capability × 10 `capability`: the command
  /// line's if it does, else the GPU's own.
  void runOn(unsigned capability);

  /// The same for one architecture alone, compute capability × 10.
  CompileOptions only(unsigned capability) const;

  /// Options for Clang's driver (no program name, no input): language, CUDA paths, one view, `frontendFlags`.
  std::vector<std::string> clangArgs(const Toolchain &toolchain, View view) const;
};

} // namespace optiml

#endif
