//===- ReadContext.cpp - what the words around a word make of it ----------===//
//
// "softmax of the attention scores" asks for no attention, "without bias" for no bias, "by direct summation" for no sum, and a matrix
// "times its transpose" is more than a matrix product.
//
//===----------------------------------------------------------------------===//
#include "Reader.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

/// Words that say nothing by themselves.
bool optiml::gen::isGrammar(StringRef word) {
  static const std::set<StringRef> words = {"one", "over", "a",   "in",   "to", "by",   "is",   "are", "any",
                                            "all", "with", "two", "each", "if", "up",   "down", "out", "not",
                                            "of",  "the",  "on",  "from", "at", "that", "and",  "its", "at"};
  return words.count(word) != 0;
}

static bool says(const Token &token, const std::string &word) {
  return (token.text == word && (!token.isShape() || word == "interval")) ||
         (token.isNumber() && (token.raw == word || word == "#")) || (token.isShape() && token.raw == word);
}

/// The words of a phrase close together, the first of them being any; "a vector times a sparse matrix".
std::optional<Span> Reader::matchInAnyOrder(size_t start, const std::vector<std::string> &phrase, bool isWide) const {
  Span span;
  std::vector<bool> found(phrase.size(), false);
  size_t end = std::min(tokens.size(), start + phrase.size() + (phrase.size() == 2 ? 7 : 6));
  for (size_t at = start; at < end; ++at) {
    const Token &token = tokens[at];
    // What the data are does not separate the words of a description.
    if (isWide && end < tokens.size() && end < start + 18 &&
        (typeAt.count(at) || !token.values.empty() || vocabulary.isFiller(token.text)))
      ++end;
    if (token.raw == "," || token.raw == "." || token.raw == ";" || token.raw == "then")
      return std::nullopt;
    if (token.raw == ")" && tokens[start].raw.size() == 1)
      return std::nullopt; // "exp(x) times y"
    size_t which = 0;
    while (which < phrase.size() && (found[which] || !says(token, phrase[which])))
      ++which;
    if (which == phrase.size() || used[at]) {
      if (at == start)
        return std::nullopt;
      continue;
    }
    found[which] = true;
    span.at.push_back(at);
    if (span.at.size() == phrase.size())
      return span;
  }
  return std::nullopt;
}

/// "subtract the maximum, exponentiate and divide by the sum": one step after the other, over clauses.
std::optional<Span> Reader::matchSteps(const std::vector<Phrases> &steps) const {
  constexpr size_t apart = 12;
  Span span;
  for (const Phrases &step : steps) {
    size_t begin = span.at.empty() ? 0 : span.at.back() + 1,
           end = span.at.empty() ? tokens.size() : std::min(begin + apart, tokens.size());
    std::optional<Span> found;
    for (size_t at = begin; at < end && !found; ++at)
      for (const std::vector<std::string> &phrase : step)
        if (!found)
          found = matchInAnyOrder(at, phrase, true);
    if (!found)
      return std::nullopt;
    llvm::sort(found->at);
    span.at.insert(span.at.end(), found->at.begin(), found->at.end());
  }
  return span;
}

/// "without bias", "instead of a sum": that one not.
bool Reader::isExcluded(const Span &span) const {
  size_t at = *llvm::min_element(span.at);
  for (unsigned back = 0; back < 3 && at > 0; ++back) {
    const std::string &word = tokens[--at].raw;
    if (word == "about" && at > 0 && tokens[at - 1].raw == "not") // "I do not care about the sign"
      return true;
    if (word == "without" || word == "no" || word == "excluding" ||
        (word == "of" && at > 0 && tokens[at - 1].raw == "instead") ||
        (word == "than" && at > 0 && tokens[at - 1].raw == "rather"))
      return true;
    if (word != "a" && word != "an" && word != "the" && word != "any")
      return false;
  }
  return false;
}

/// "temperature softmax: divide by 0.7, then softmax": what is behind a colon tells the order.
bool Reader::explainsAgain(size_t first, size_t again) const {
  for (size_t at = first + 1; at <= again; ++at)
    if (tokens[at].explains)
      return true;
  return false;
}

/// "1 if greater than 0.5" is about no maximum.
bool Reader::compares(size_t at) const {
  static const std::set<StringRef> comparatives = {"greater", "larger", "bigger", "higher",
                                                   "smaller", "lower",  "lesser"};
  return comparatives.count(tokens[at].raw) && at + 1 < tokens.size() && tokens[at + 1].raw == "than";
}

/// How many parentheses are open.
unsigned Reader::depthAt(size_t where) const {
  unsigned depth = 0;
  for (size_t at = 0; at < where; ++at) {
    depth += tokens[at].raw == "(";
    depth -= tokens[at].raw == ")" && depth;
  }
  return depth;
}

/// In parentheses, or the way to compute it: "by direct summation", "using a prefix sum".
bool Reader::isAside(const Span &span) const {
  size_t first = *llvm::min_element(span.at);
  if (depthAt(first) > depthAt(heavy.first()))
    return true;
  for (size_t at = first; at > 0 && at + 4 > first; --at) {
    const std::string &word = tokens[at - 1].raw;
    static const std::set<StringRef> takesBy = {"multiply", "divide",   "followed", "preceded", "scal",
                                                "raised",   "normaliz", "sort",     "group",    "shift"};
    if (word == "by" && at > 1 && (takesBy.count(tokens[at - 2].text) || takesBy.count(tokens[at - 2].raw)))
      return false;
    if (word == "by" || word == "via" || word == "using" || word == "through" || (word == "into" && at + 1 >= first))
      return true;
    if (word == "," || word == "." || word == "and" || word == "then" || word == "of" || word == "followed")
      return false;
  }
  return false;
}

/// "softmax of the attention scores", "normalize every embedding vector": data that is named after an operation.
bool Reader::isDataName(const Operation &op, const Span &span) const {
  static const std::set<StringRef> data = {"vector",  "vectors",  "scores",       "score",  "logits",  "table",
                                           "weights", "mask",     "matrix",       "output", "outputs", "maps",
                                           "rows",    "features", "coefficients", "file",   "bins",    "results"};
  size_t next = *llvm::max_element(span.at) + 1;
  if (span.at.size() == 1 && tokens[span.at[0]].raw == "embeddings")
    return true;
  static const std::set<StringRef> behindVerb = {"in",         "by",        "from", "so", "ascending",
                                                 "descending", "according", ",",    "."};
  if (!op.isStage && span.at.size() == 1 && tokens[span.at[0]].raw == "sorted" && next < tokens.size() &&
      !behindVerb.count(tokens[next].raw))
    return true; // "a sorted table"
  if (!op.isStage && span.at.size() == 1 && span.at[0] > 1 && tokens[span.at[0] - 1].raw == "two" &&
      tokens[span.at[0] - 2].raw != "the" &&
      (tokens[span.at[0] - 2].raw == "of" || tokens[span.at[0] - 2].raw == "between") &&
      tokens[span.at[0]].raw.back() == 's')
    return true; // "the divergence of two histograms"
  return !op.isStage && span.at.size() == 1 && next < tokens.size() && data.count(tokens[next].raw);
}

/// "the running total of coverage differences", "of log returns": what the numbers are, not what is to be done with
/// them.
bool Reader::namesData(const Match &match) const {
  static const std::set<StringRef> plural = {"thresholds", "offsets", "exponents", "fills", "floors"};
  size_t first = match.span.at.front();
  if (match.op->isStage && plural.count(tokens[first].raw))
    return true;
  if (!match.op->isStage || match.span.at.size() > 1 || !heavy.op || heavy.span.at.front() > first || first < 2)
    return false;
  const Token &before = tokens[first - 1];
  return before.values.empty() && before.raw.size() > 2 && llvm::isAlpha(before.raw[0]) &&
         !vocabulary.isFiller(before.text) && !index.isKnown(before.text) && !used[first - 1];
}

/// Another operation that is nearly said by its name if the word at `at` counts: "a matrix times its transpose".
const Operation *Reader::otherMeaning(size_t at) const {
  for (const Operation &op : library.operations()) {
    if (op.isFamily || op.isSnippet || &op == heavy.op || op.definitions.count("suffix"))
      continue;
    for (const std::vector<std::string> &phrase : index.phrases(&op)) {
      if (!llvm::is_contained(phrase, tokens[at].text))
        continue;
      size_t content = llvm::count_if(phrase, [&](const std::string &word) { return !isGrammar(word); });
      bool said = llvm::all_of(phrase, [&](const std::string &word) {
        if (isGrammar(word))
          return true;
        for (size_t other = at > 6 ? at - 6 : 0; other < std::min(at + 7, tokens.size()); ++other)
          if (tokens[other].text == word)
            return true;
        return false;
      });
      if (said && content > 1)
        return &op;
    }
  }
  return nullptr;
}
