//===- ReadSpelling.cpp - words that nobody knows as they are written -----===//
//
// "sumof", "pre-fix", "convolution2d", "histogramm": a word that is neither in the vocabulary nor in the library is
// taken apart, joined with the next one, or read as the one known word that differs from it in one letter. The
// request's notes tell of it.
//
//===----------------------------------------------------------------------===//
#include "Reader.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

/// Shorter words are too easily another word.
static constexpr size_t leastCorrected = 6;

bool Reader::isKnown(const std::string &word) const {
  return vocabulary.isKnown(word) || index.isKnown(vocabulary.canonical(word));
}

/// One letter more, less or other, or two exchanged; the first one stands.
static bool isNear(StringRef a, StringRef b) {
  if (a[0] != b[0] || a == b)
    return false;
  if (a.edit_distance(b, true, 1) <= 1)
    return true;
  auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return a.size() == b.size() && left + 1 < a.end() && left[0] == right[1] && left[1] == right[0] &&
         StringRef(left + 2, a.end() - left - 2) == StringRef(right + 2, b.end() - right - 2);
}

/// "crossentropyloss", "rowwise": the fewest known words of three letters or more that make up `word`; none where there
/// are not two.
std::vector<std::string> Reader::takeApart(StringRef word) const {
  constexpr size_t shortest = 3;
  static const std::set<StringRef> shorter = {"1d", "2d", "3d", "l1", "l2"};
  std::vector<std::vector<std::string>> best(word.size() + 1); // of the first so many letters
  for (size_t end = shortest; end <= word.size(); ++end)
    for (size_t begin = 0; begin < end; ++begin) {
      StringRef part = word.slice(begin, end);
      if ((begin > 0 && best[begin].empty()) ||
          !(shorter.count(part) || (part.size() >= shortest && isKnown(part.str()))))
        continue;
      if (best[end].empty() || best[begin].size() + 1 < best[end].size()) {
        std::vector<std::string> parts = best[begin];
        parts.push_back(part.str());
        best[end] = std::move(parts);
      }
    }
  // They must be words of operations' names: no "bit map", no "land marks".
  bool isName = llvm::all_of(best.back(), [&](const std::string &part) {
    return shorter.count(part) || (index.names(vocabulary.canonical(part)) && !isGrammar(part) && part != "using" && part != "map");
  });
  return isName && best.back().size() > 1 && best.back().size() < 5 ? best.back() : std::vector<std::string>();
}

void Reader::correctSpelling() {
  auto isWord = [&](const Token &token) {
    return token.values.empty() && llvm::all_of(token.raw, llvm::isAlnum) && llvm::isAlpha(token.raw[0]);
  };
  auto made = [&](const std::string &word) { return Token{vocabulary.canonical(word), word, {}, false}; };
  std::vector<Token> read;
  for (size_t at = 0; at < tokens.size(); ++at) {
    const std::string &word = tokens[at].raw;
    bool joins = at + 1 < tokens.size() && isWord(tokens[at]) && isWord(tokens[at + 1]) &&
                 word.size() + tokens[at + 1].raw.size() >= leastCorrected;
    if (joins && (!isKnown(word) || !isKnown(tokens[at + 1].raw)) && isKnown(word + tokens[at + 1].raw)) {
      read.push_back(made(word + tokens[at + 1].raw));
      ++at;
      continue;
    }
    if (!isWord(tokens[at]) || isKnown(word)) {
      read.push_back(tokens[at]);
      continue;
    }
    std::vector<std::string> parts;
    for (size_t cut = 2; parts.empty() && cut + 2 <= word.size() && word.size() >= 5; ++cut) {
      std::string head = word.substr(0, cut), tail = word.substr(cut);
      if (index.names(vocabulary.canonical(head)) && isKnown(head) &&
          (tail == "of" || tail == "by" || tail == "2d" || tail == "3d" || tail == "1d"))
        parts = {head, tail};
    }
    if (parts.empty() && word.size() >= leastCorrected)
      parts = takeApart(word);
    std::set<std::string> near; // by what they mean
    if (parts.empty() && word.size() >= leastCorrected) {
      std::string spelling;
      for (const std::string &known : vocabulary.knownWords())
        if (isNear(word, known))
          near.insert(vocabulary.canonical(known)), spelling = known;
      for (const std::string &known : index.allNames())
        if (isNear(word, known))
          near.insert(known), spelling = known;
      if (near.size() == 1)
        parts = {spelling};
    }
    if (parts.empty()) {
      read.push_back(tokens[at]);
      continue;
    }
    for (const std::string &part : parts)
      read.push_back(made(part));
    result.notes.push_back("'" + word + "' is read as '" + llvm::join(parts, " ") + "'");
  }
  tokens = std::move(read);
  used.assign(tokens.size(), false);
}
