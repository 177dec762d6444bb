//===- ModelFlags.h - which language models to ask, and how far -*- C++ -*-===//
//
// What the flags --optiml-llm* of a command line say. The launcher links it, so it includes no LLVM header.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LANGUAGEMODELS_MODELFLAGS_H
#define OPTIML_LANGUAGEMODELS_MODELFLAGS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace optiml {

/// What all models of a run together may use.
struct ModelBudget {
  uint64_t calls = 50;
  uint64_t tokens = 500000; ///< of prompts and answers
  double usd = 0;           ///< 0: no limit but that of the tokens
};

struct ModelFlags {
  /// In the order of the command line: a URL, `anthropic:URL`, `exec:CMD`, `replay:FILE`.
  std::vector<std::string> models;
  /// The n-th is for the n-th of `models`; the last of the shorter list goes on, so that one endpoint may serve several
  /// models and one name stand at several endpoints.
  std::vector<std::string> names;
  /// Environment variables that hold the keys, the n-th for the n-th endpoint; "none": no key.
  std::vector<std::string> keyVariables;
  ModelBudget budget;
  std::string prices;     ///< file with a price table; empty: the built-in one
  double timeout = 120;   ///< seconds for one question with all its retries
  std::string transcript; ///< file; empty: where the program keeps its transcripts; "none": nowhere
};

/// Setters for the values of --optiml-llm, --optiml-llm-model, --optiml-llm-key-env, --optiml-llm-budget and
/// --optiml-llm-timeout. On a wrong value they return false and say in `error` what is wanted.
bool addModel(std::string_view value, ModelFlags &flags, std::string &error);
bool addModelName(std::string_view value, ModelFlags &flags, std::string &error);
bool addKeyVariable(std::string_view value, ModelFlags &flags, std::string &error);
/// `20` (calls), `200k` or `1.5M` (tokens), `1.50usd`, in any order with commas between. A limit that is not given
/// keeps its default.
bool setModelBudget(std::string_view value, ModelFlags &flags, std::string &error);
bool setModelTimeout(std::string_view value, ModelFlags &flags, std::string &error);

} // namespace optiml

#endif
