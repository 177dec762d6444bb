//===- Recall.h - in which words operations have been asked for -*- C++ -*-===//
//
// operations/examples.txt holds the words of the known requests for each operation ("refused": for what the library
// does not hold). Where the phrases of the operations do not explain a request, the operation that was asked for in the
// most similar words (cosine of rare words and pairs of them) is tried, if no other one comes near.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_RECALL_H
#define OPTIML_LIB_GENERATE_RECALL_H

#include "optiml/Generate/Words.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml::gen {

class Recall {
public:
  explicit Recall(llvm::StringRef examples);
  static const Recall &builtin();

  struct Guess {
    std::string operation;
    double score = 0; ///< how alike requests for it are: about 1 for the same words
  };
  /// All operations that are asked for in any such words, the likeliest first.
  std::vector<Guess> guesses(const std::vector<Token> &tokens) const;
  /// The operation that is asked for in such words; empty where several are, or only others than the library's.
  std::string guess(const std::vector<Token> &tokens) const;
  /// Whether requests for the operation have this word.
  bool knows(const std::string &operation, const std::string &word) const;
  /// Words that say nothing about what is asked for ("the", "please").
  static bool isLight(llvm::StringRef raw);
  /// For how many operations requests have the word.
  unsigned spreadOf(const std::string &word) const;
  /// Whether any known request has the word.
  bool hasHeard(const std::string &word) const { return known.count(word) != 0; }
  /// Whether the word is said often, of one other thing above all, and never of these operations.
  bool isStrange(const std::vector<std::string> &operations, const std::string &word) const;

private:
  static constexpr double unheard = 5; ///< the weight of a word that no request has
  std::vector<std::string> names;
  std::map<std::string, std::map<std::string, unsigned>> known; ///< of a word: the operations, with numbers of requests
  std::vector<unsigned> operations;                             ///< of every request
  std::map<std::string, unsigned> ids;                          ///< of words and pairs of words
  std::vector<double> rarity;
  std::vector<std::vector<std::pair<unsigned, double>>> occurrences; ///< of a word: requests, and its share of them
};

} // namespace optiml::gen

#endif
