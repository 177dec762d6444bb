//===- Words.h - lists of words -----------------------------------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_WORDS_H
#define OPTIML_SUPPORT_WORDS_H

#include "llvm/ADT/StringExtras.h"
#include <set>

namespace optiml {

/// The words of a text that has one space between them, as a set.
inline std::set<llvm::StringRef> words(llvm::StringRef text) {
  auto parts = llvm::split(text, ' ');
  return {parts.begin(), parts.end()};
}

} // namespace optiml

#endif
