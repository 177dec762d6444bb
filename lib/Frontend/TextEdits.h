//===- TextEdits.h - places of a text that change ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_TEXTEDITS_H
#define OPTIML_LIB_FRONTEND_TEXTEDITS_H

#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <string>

namespace optiml {

/// What stands in place of a piece of a text, up to `end`.
struct TextEdit {
  size_t end = 0;
  std::string text;
};
using TextEdits = std::map<size_t, TextEdit>; ///< by where the pieces begin

/// The text with them made, but for those that begin within another; nothing where there are none.
inline std::optional<std::string> edited(llvm::StringRef text, const TextEdits &edits) {
  if (edits.empty())
    return std::nullopt;
  std::string result;
  size_t at = 0;
  for (const auto &[begin, edit] : edits) {
    if (begin < at)
      continue;
    result += text.slice(at, begin);
    result += edit.text;
    at = edit.end;
  }
  return result + text.substr(at).str();
}

} // namespace optiml

#endif
