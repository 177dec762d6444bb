//===- SourcePlaces.h - where code stands in the user's files ---*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_SOURCEPLACES_H
#define OPTIML_LIB_EMULATOR_SOURCEPLACES_H

#include "optiml/Frontend/CompileOptions.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include <map>
#include <string>
#include <vector>

namespace optiml::emu {

/// A piece of the user's code.
struct CodePlace {
  std::string function, file;
  uint32_t line = 0;
  uint64_t functionHash = 0; ///< of the code of the function that holds it
  uint64_t place = 0;        ///< a hash: the same for all instances of a template
};

/// Folders of headers that are not the user's own.
class SystemFolders {
public:
  explicit SystemFolders(const Toolchain &toolchain)
      : folders({toolchain.cudaPath + "/", toolchain.resourceDir + "/", "/usr/", "/optiml/"}) {}
  bool hold(const llvm::DILocation &place) const;

private:
  std::vector<std::string> folders;
};

/// Numbers the pieces of code of one function, so that those of one place in the source (a macro's) stay apart.
class PlaceNumbers {
public:
  uint64_t next(const llvm::DILocation &place);

private:
  std::map<std::pair<unsigned, unsigned>, unsigned> seen; ///< by line and column
};

/// Of a place in the source; without one, `f`'s own name.
std::string functionName(const llvm::DILocation *place, const llvm::Function &f);
/// As the user would write it: relative to the current folder when it lies below.
std::string filePath(const llvm::DILocation &place);

} // namespace optiml::emu

#endif
