//===- NvccFlags.h - what each of nvcc's flags means to us ------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_NVCCFLAGS_H
#define OPTIML_LIB_FRONTEND_NVCCFLAGS_H

#include "llvm/ADT/StringRef.h"

namespace optiml {

struct NvccFlag {
  enum class Shape {
    Flag,   ///< stands alone
    Value,  ///< `-name value` or `-name=value`
    Joined, ///< one letter: also `-Nvalue`
  };
  enum class Meaning {
    Ignore,  ///< only nvcc cares
    TooHard, ///< the command produces something other than an object or a program
    Arch,
    CompileOnly,
    Define,
    DeviceDebug,
    FastMath,
    Fmad,
    ForwardUnknown,
    Gencode,
    HostFlags,
    Include,
    Language,
    Library,
    LibraryPath,
    MakesLibrary,
    OptionsFile,
    Output,
    PreInclude,
    Relocatable,
    Standard,
    SystemInclude,
    TemplateDepth,
    Undefine,
  };
  llvm::StringRef name; ///< without dashes
  Shape shape;
  Meaning meaning;
};

/// The flag of this name (without dashes), or null.
const NvccFlag *findNvccFlag(llvm::StringRef name);

} // namespace optiml

#endif
