//===- SourcePlaces.cpp - where code stands in the user's files --------------===//
#include "SourcePlaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace optiml::emu;

bool SystemFolders::hold(const DILocation &place) const {
  return any_of(folders, [&](const std::string &folder) { return place.getFilename().starts_with(folder); });
}

uint64_t PlaceNumbers::next(const DILocation &place) {
  unsigned number = seen[{place.getLine(), place.getColumn()}]++;
  return xxh3_64bits(formatv("{0}:{1}:{2}:{3}", place.getFilename(), place.getLine(), place.getColumn(), number).str());
}

std::string optiml::emu::functionName(const DILocation *location, const Function &f) {
  if (location && location->getScope())
    if (const DISubprogram *sp = location->getScope()->getSubprogram(); sp && !sp->getName().empty())
      return sp->getName().str();
  return demangle(f.getName());
}

std::string optiml::emu::filePath(const DILocation &location) {
  SmallString<256> path(location.getDirectory());
  sys::path::append(path, location.getFilename());
  if (sys::path::is_absolute(location.getFilename()))
    path = location.getFilename();
  SmallString<256> folder;
  StringRef result = path;
  if (!sys::fs::current_path(folder) && result.consume_front(folder) && result.consume_front("/"))
    return result.str();
  return path.str().str();
}
