//===- Recall.cpp - in which words operations have been asked for ---------===//
#include "Recall.h"
#include "EmbeddedFile.h"
#include "optiml/Generate/Request.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Regex.h"
#include <cmath>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

static constexpr StringRef refused = "refused";

/// Words that tell something, and pairs of them.
static std::set<std::string> featuresOf(const std::vector<Token> &tokens) {
  static const std::set<StringRef> light = {"the",    "of",  "for",  "to",       "and",  "in",   "on",  "with", "is",
                                            "are",    "be",  "by",   "an",       "my",   "we",   "me",  "it",   "float",
                                            "double", "int", "half", "unsigned", "fp32", "fp64", "fp16"};
  std::set<std::string> result;
  std::string last;
  for (const Token &token : tokens) {
    if (!token.values.empty() || token.text.size() < 2 || !llvm::isAlpha(token.text[0]) || light.count(token.raw))
      continue;
    result.insert(token.text);
    if (!last.empty())
      result.insert(last + "_" + token.text);
    last = token.text;
  }
  return result;
}

Recall::Recall(StringRef examples) {
  llvm::SmallVector<StringRef, 0> lines;
  examples.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    if (line.starts_with("#"))
      continue;
    llvm::SmallVector<StringRef, 0> parts;
    line.split(parts, ' ', -1, false);
    Operation operation;
    operation.name = parts[0].str();
    parts[1].getAsDouble(operation.requests);
    for (StringRef part : llvm::ArrayRef(parts).drop_front(2)) {
      auto [feature, count] = part.split(':');
      double value = 1;
      if (!count.empty())
        count.getAsDouble(value);
      operation.counts[feature.str()] = value;
      spread[feature.str()] += 1;
      total[feature.str()] += value;
    }
    operations.push_back(std::move(operation));
  }
}

const Recall &Recall::builtin() {
  static const Recall recall = [] {
    for (const EmbeddedFile *file = embeddedOperationFiles; file->name; ++file)
      if (StringRef(file->name) == "examples.txt")
        return Recall(file->text);
    llvm::report_fatal_error("examples.txt is not embedded");
  }();
  return recall;
}

bool Recall::knows(const std::string &name, const std::string &word) const {
  auto operation = llvm::find_if(operations, [&](const Operation &op) { return op.name == name; });
  return operation != operations.end() && operation->counts.count(word);
}

std::string Recall::guess(const std::vector<Token> &tokens) const {
  // How much likelier than the second it must be, and how much must speak for it.
  constexpr double margin = 1.7, least = 22;
  std::set<std::string> features = featuresOf(tokens);
  const Operation *best = nullptr;
  double first = 0, second = 0;
  for (const Operation &operation : operations) {
    if (operation.name == refused)
      continue;
    double score = 0;
    for (const std::string &feature : features)
      if (auto it = operation.counts.find(feature); it != operation.counts.end())
        score += std::log(1 + 20 * it->second / (operation.requests + 1)) *
                 std::log((operations.size() + 1) / spread.at(feature));
    if (score > first) {
      second = first;
      first = score;
      best = &operation;
    } else
      second = std::max(second, score);
  }
  if (!best || first < least || first < margin * second)
    return "";
  // "shuffle", "interleave": what nobody asked this operation for
  const Operation *others =
      &*llvm::find_if(operations, [](const Operation &operation) { return operation.name == refused; });
  for (const std::string &feature : features)
    if (auto it = others->counts.find(feature); it != others->counts.end())
      if (it->second > 1 && it->second > total.at(feature) / 2 && !best->counts.count(feature))
        return "";
  return best->name;
}

std::string optiml::gen::learnWords(StringRef lists, const Vocabulary &vocabulary) {
  static const llvm::Regex entry("^([a-z0-9-]+)( \\{[^}]*\\})?: (.*)$");
  std::map<std::string, std::map<std::string, unsigned>> counts;
  std::map<std::string, unsigned> requests;
  llvm::SmallVector<StringRef, 0> lines;
  lists.split(lines, '\n', -1, false);
  llvm::SmallVector<StringRef, 4> groups;
  for (StringRef line : lines)
    if (!line.starts_with("#") && entry.match(line, &groups)) {
      std::string name = groups[1].str();
      ++requests[name];
      for (const std::string &feature : featuresOf(vocabulary.tokenize(groups[3])))
        ++counts[name][feature];
    }
  std::string text = "# Written by optiml-gen --learn from test/Generate/Inputs: operation, number of requests, words "
                     "with their counts.\n";
  for (const auto &[name, features] : counts) {
    text += name + " " + std::to_string(requests[name]);
    for (const auto &[feature, count] : features)
      if (count > 1 || !StringRef(feature).contains('_'))
        text += " " + feature + (count > 1 ? ":" + std::to_string(count) : "");
    text += "\n";
  }
  return text;
}
