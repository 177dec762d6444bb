//===- TextFile.cpp - CUDA texts with placeholders ------------------------===//
#include "Texts.h"
#include "optiml/Support/EmbeddedFile.h"
#include "llvm/ADT/StringRef.h"

using namespace optiml;

namespace optiml {
extern const EmbeddedFile emitTexts[]; ///< written by cmake/EmbedTexts.cmake
} // namespace optiml

std::string optiml::filledText(const char *file, const std::map<std::string, std::string> &values) {
  std::string result;
  llvm::StringRef text = embeddedText(emitTexts, file);
  while (!text.empty()) {
    auto [before, rest] = text.split('$');
    result += before;
    const std::string *name = nullptr;
    for (const auto &[candidate, value] : values)
      if (rest.starts_with(candidate) && (!name || candidate.size() > name->size()))
        name = &candidate;
    if (name) {
      result += values.at(*name);
      rest = rest.drop_front(name->size());
    }
    text = rest;
  }
  return result;
}
