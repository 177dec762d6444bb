//===- Words.h - plain words to tokens --------------------------*- C++ -*-===//
//
// A small deterministic front: numbers and shapes become tokens with values, words are brought to one form (British and
// American, plural, verb forms, synonyms of lib/Generate/operations/words.txt).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GENERATE_WORDS_H
#define OPTIML_GENERATE_WORDS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace optiml::gen {

/// The shortest decimal form that reads back as `value`.
std::string shortestNumber(double value);

struct Token {
  std::string text; ///< canonical form; "#" for numbers and shapes
  std::string raw;
  std::vector<double> values; ///< one for a number, several for a shape
  bool spelled = false;       ///< "eight": a number only where one is wanted
  bool qualifies = false;     ///< stands before a "." or "::" with a name behind it
  bool explains = false;      ///< the first word behind a colon
  bool isNumber() const { return values.size() == 1; }
  bool isShape() const { return values.size() > 1; }
};

/// Tokens [first, last] of a request that mean something, not necessarily all between them.
struct Span {
  std::vector<size_t> at;
};

class Vocabulary {
public:
  /// The text of words.txt: lines "synonym a: b, c", "modifier m: phrase, …", "type t: …", "filler: …", "unknown:
  /// phrase, …", "set s: word, …", "idle: phrase, …", "telling: word, …", "data: word, …", "qualifier: word, …", "blas:
  /// name, …".
  static llvm::Expected<Vocabulary> parse(llvm::StringRef text);
  static const Vocabulary &builtin();

  std::vector<Token> tokenize(llvm::StringRef request) const;
  /// A phrase's canonical words.
  std::vector<std::string> words(llvm::StringRef phrase) const;
  /// The phrases that "<discard> negative" stands for, one for every word of the set; canonical.
  std::vector<std::vector<std::string>> phrases(llvm::StringRef pattern) const;
  bool isFiller(const std::string &word) const { return fillers.count(word) != 0; }
  /// What numbers are of ("offsets", "losses"): says nothing where it is no part of a name, though other operations
  /// know it.
  bool isData(const std::string &raw) const { return data.count(raw) != 0; }
  /// Words of the field that no operation offers ("eigenvalue").
  bool isForeign(const std::string &word) const { return foreign.count(word) != 0 && !isFiller(word); }

  /// Words that cannot be left out without another meaning ("odd", "local").
  bool isTelling(const std::string &word) const { return telling.count(word) != 0; }

  /// A verb that says what is to be done with data ("split"), in any of its forms: <action> of words.txt.
  bool isAction(const std::string &raw) const { return actions.count(stem(raw)) != 0; }

  std::map<std::string, std::vector<std::vector<std::string>>> modifiers, types, hints;
  std::map<std::string, std::string> implied; ///< type that the name of an operation has in it (dgemm), by word
  std::vector<std::vector<std::string>>
      foreignPhrases;                         ///< what no operation offers, in several words ("binary cross entropy")
  std::vector<std::vector<std::string>> idle; ///< phrases that say nothing, though their words may
  /// Every word that a line of words.txt mentions, as it is written there.
  bool isKnown(const std::string &word) const { return spelled.count(word) || isFiller(canonical(word)) || isForeign(canonical(word)); }
  const std::set<std::string> &knownWords() const { return spelled; }
  std::string canonical(std::string word) const;
  /// Without its ending ("summing": "sum").
  static std::string stem(std::string word);

private:
  void addBlas(const std::string &routine);
  std::vector<Token> withoutQualifiers(std::vector<Token> tokens) const;

  std::map<std::string, std::vector<std::string>> sets; ///< words that phrases of operations name together
  std::map<std::string, std::string> synonyms; ///< stem to canonical
  std::set<std::string> actions, fillers, foreign, telling, spelled, qualifiers, data;
};

/// The words of `phrase` in order from token `start`, at most `gap` other ones between two of them (not counting what
/// is in parentheses) and none of them used; nothing when it is not there.
std::optional<Span> matchPhrase(const std::vector<Token> &tokens, size_t start, const std::vector<std::string> &phrase,
                                unsigned gap, const std::vector<bool> &used);

} // namespace optiml::gen

#endif
