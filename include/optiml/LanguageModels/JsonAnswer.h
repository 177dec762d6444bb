//===- JsonAnswer.h - JSON out of what a model wrote ------------*- C++ -*-===//
//
// Models put JSON into fences and prose, leave commas behind, and stop in the middle. Everything here is safe on any
// text.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LANGUAGEMODELS_JSONANSWER_H
#define OPTIML_LANGUAGEMODELS_JSONANSWER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>

namespace optiml {

struct JsonLimits {
  size_t bytes = 1 << 20; ///< of the text
  unsigned depth = 32;    ///< of nested arrays and objects
};

/// Strict JSON within limits; an error says what is wrong.
llvm::Expected<nlohmann::json> parseJsonWithin(llvm::StringRef text, const JsonLimits &limits = {});

/// The object or array in an answer: the whole text, or what stands in a fence, or the first that is found in the
/// prose. Commas before a closing bracket are dropped. An error says whether the answer was too long, cut off, or held
/// none.
llvm::Expected<nlohmann::json> extractJson(llvm::StringRef text, const JsonLimits &limits = {});

/// The text with every byte that is no UTF-8 replaced by U+FFFD.
std::string validUtf8(llvm::StringRef text);

} // namespace optiml

#endif
