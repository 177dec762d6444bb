//===- PromptTexts.h - what language models are told ------------*- C++ -*-===//
#ifndef OPTIML_LIB_PROPOSE_PROMPTTEXTS_H
#define OPTIML_LIB_PROPOSE_PROMPTTEXTS_H

#include "optiml/Support/EmbeddedFile.h"
#include <nlohmann/json.hpp>

namespace optiml {

/// The files of the folder texts.
extern const EmbeddedFile proposeTexts[];

inline std::string promptText(const char *file) { return embeddedText(proposeTexts, file); }
/// The JSON schema of an answer.
inline nlohmann::json answerSchema(const char *file) { return nlohmann::json::parse(promptText(file)); }

} // namespace optiml

#endif
