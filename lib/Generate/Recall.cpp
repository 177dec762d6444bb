//===- Recall.cpp - in which words operations have been asked for ---------===//
#include "Recall.h"
#include "EmbeddedFile.h"
#include "optiml/Generate/Request.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Regex.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

static constexpr StringRef refused = "refused";

/// Words that stand in any request, whatever is asked for.
static bool isInAny(StringRef raw) {
  static const std::set<StringRef> words = {
      "the",  "of",   "for",  "to",  "and",   "in",    "on",   "with",   "is",   "are",  "be",       "by",
      "an",   "my",   "we",   "me",  "it",    "float", "this", "double", "int",  "half", "unsigned", "fp32",
      "fp64", "fp16", "that", "its", "which", "their", "as",   "at",     "from", "so"};
  return words.count(raw) != 0;
}

bool Recall::isLight(StringRef raw) {
  static const std::set<StringRef> light = {
      "a",    "please", "would", "could", "you",  "have", "i",    "want",  "need",  "like", "should", "has",
      "can",  "does",   "do",    "our",   "some", "was",  "were", "these", "those", "them", "they",   "also",
      "will", "what",   "where", "when",  "then", "or",   "your", "been",  "such",  "any",  "there",  "into"};
  return isInAny(raw) || light.count(raw) != 0;
}

/// The words that tell something, in their order.
static std::vector<std::string> wordsOf(const std::vector<Token> &tokens) {
  std::vector<std::string> result;
  for (const Token &token : tokens)
    if ((token.values.empty() || token.spelled) && token.text.size() > 1 && llvm::isAlpha(token.text[0]) &&
        !isInAny(token.raw))
      result.push_back(token.text);
  return result;
}

/// Words, and two beside each other.
static std::set<std::string> featuresOf(const std::vector<std::string> &words) {
  std::set<std::string> result(words.begin(), words.end());
  for (size_t i = 0; i + 1 < words.size(); ++i)
    result.insert(words[i] + "_" + words[i + 1]);
  return result;
}

Recall::Recall(StringRef text) {
  llvm::SmallVector<StringRef, 0> lines;
  text.split(lines, '\n', -1, false);
  std::vector<std::vector<unsigned>> features;
  std::vector<unsigned> frequency;
  for (StringRef line : lines) {
    auto [name, requests] = line.split(": ");
    if (line.starts_with("#") || requests.empty())
      continue;
    llvm::SmallVector<StringRef, 0> parts, words;
    requests.split(parts, "; ", -1, false);
    for (StringRef part : parts) {
      words.clear();
      part.split(words, ' ', -1, false);
      std::vector<std::string> all;
      for (StringRef word : words)
        all.push_back(word.str());
      for (const std::string &word : std::set<std::string>(all.begin(), all.end())) {
        llvm::SmallVector<StringRef, 4> stages;
        name.split(stages, '+');
        for (StringRef stage : stages)
          ++known[word][stage.str()];
      }
      features.emplace_back();
      operations.push_back(unsigned(names.size()));
      for (const std::string &feature : featuresOf(all)) {
        auto [at, isNew] = ids.insert({feature, unsigned(frequency.size())});
        if (isNew)
          frequency.push_back(0);
        ++frequency[at->second];
        features.back().push_back(at->second);
      }
    }
    names.push_back(name.str());
  }
  rarity.resize(frequency.size());
  for (const auto &[feature, id] : ids) // two words that are rare beside each other say half as much as a rare word
    rarity[id] = (StringRef(feature).contains('_') ? 0.5 : 1) *
                 std::log(double(features.size() + 1) / double(frequency[id] + 1));
  occurrences.resize(frequency.size());
  for (size_t request = 0; request < features.size(); ++request) {
    double square = 0;
    for (unsigned id : features[request])
      square += rarity[id] * rarity[id];
    for (unsigned id : features[request])
      occurrences[id].push_back({unsigned(request), rarity[id] / std::sqrt(std::max(square, 1e-9))});
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
  auto operations = known.find(word);
  return operations != known.end() && operations->second.count(name);
}

unsigned Recall::spreadOf(const std::string &word) const {
  auto operations = known.find(word);
  return operations == known.end() ? 0 : unsigned(operations->second.size());
}

bool Recall::isStrange(const std::vector<std::string> &operations, const std::string &word) const {
  auto found = known.find(word);
  if (found == known.end())
    return false;
  unsigned all = 0, most = 0, own = 0;
  for (const auto &[name, count] : found->second) {
    all += count;
    if (llvm::is_contained(operations, name))
      own += count;
    else
      most = std::max(most, count);
  }
  return !own && all >= 4 && most >= (all < 8 ? 0.65 : 0.5) * all;
}

std::vector<Recall::Guess> Recall::guesses(const std::vector<Token> &tokens) const {
  std::map<unsigned, double> asked;
  double square = 0;
  std::vector<std::string> words = wordsOf(tokens);
  for (const std::string &feature : featuresOf(words)) {
    auto id = ids.find(feature);
    if (id != ids.end())
      asked[id->second] = rarity[id->second];
    // What nobody said yet makes all of them less alike.
    double weight = id != ids.end() ? rarity[id->second] : StringRef(feature).contains('_') ? 0 : unheard;
    square += weight * weight;
  }
  std::vector<double> alike(operations.size(), 0);
  for (auto [id, weight] : asked)
    for (auto [request, share] : occurrences[id])
      alike[request] += weight * share;
  // The most alike request for an operation counts; others that are alike support it.
  std::vector<std::vector<double>> best(names.size());
  for (size_t request = 0; request < alike.size(); ++request)
    if (alike[request] > 0)
      best[operations[request]].push_back(alike[request] / std::sqrt(std::max(square, 1e-9)));
  std::vector<Guess> result;
  for (size_t name = 0; name < names.size(); ++name) {
    std::vector<double> &scores = best[name];
    std::partial_sort(scores.begin(), scores.begin() + std::min<size_t>(3, scores.size()), scores.end(),
                      std::greater<>());
    double score = 0, weight = 1;
    for (size_t i = 0; i < std::min<size_t>(3, scores.size()); ++i, weight *= i == 1 ? 0.4 : 0.5)
      score += weight * scores[i];
    if (score > 0)
      result.push_back({names[name], score});
  }
  llvm::stable_sort(result, [](const Guess &a, const Guess &b) { return a.score > b.score; });
  return result;
}

std::string Recall::guess(const std::vector<Token> &tokens) const {
  // Two words may mean anything ("matrix of ones").
  std::vector<std::string> words = wordsOf(tokens);
  double told = 0;
  for (const std::string &word : std::set<std::string>(words.begin(), words.end()))
    if (auto id = ids.find(word); id != ids.end())
      told += rarity[id->second];
  if (told < 8)
    return "";
  // How alike it must be, and how much more than what is asked for with the second.
  constexpr double least = 0.45, margin = 1.2;
  std::vector<Guess> all = guesses(tokens);
  if (all.empty() || all[0].operation == refused || all[0].score < least ||
      (all.size() > 1 && all[0].score < margin * all[1].score))
    return "";
  // One rare word ("customer") is not enough.
  size_t heard = llvm::count_if(words, [&](const std::string &word) { return knows(all[0].operation, word); });
  if (2 * heard < words.size())
    return "";
  return all[0].operation;
}

std::string optiml::gen::learnWords(StringRef lists, const Vocabulary &vocabulary) {
  static const llvm::Regex entry("^([a-z0-9+-]+)( \\{[^}]*\\})?: (.*)$");
  std::map<std::string, std::set<std::string>> requests;
  llvm::SmallVector<StringRef, 0> lines;
  lists.split(lines, '\n', -1, false);
  llvm::SmallVector<StringRef, 4> groups;
  for (StringRef line : lines)
    if (!line.starts_with("#") && entry.match(line, &groups))
      requests[groups[1].str()].insert(llvm::join(wordsOf(vocabulary.tokenize(groups[3])), " "));
  std::string text = "# Written by optiml-gen --learn from test/Generate/Inputs: an operation, and the words of the "
                     "requests for it.\n";
  for (const auto &[name, all] : requests)
    text += name + ": " + llvm::join(all, "; ") + "\n";
  return text;
}
