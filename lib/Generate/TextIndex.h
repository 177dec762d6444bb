//===- TextIndex.h - the library's texts in a full-text index ---*- C++ -*-===//
//
// SQLite's FTS5 with its porter stemmer. Two tables: one row for all texts of an operation, which bm25() ranks, and one
// row for each short text (name, title, phrasing), to see how much of it was said.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_TEXTINDEX_H
#define OPTIML_LIB_GENERATE_TEXTINDEX_H

#include "optiml/Generate/Request.h"
#include <map>
#include <set>

namespace optiml::gen {

using Term = std::string; ///< a stemmed word

struct IndexedOperation {
  const Operation *operation = nullptr;
  std::set<Term> terms;                ///< of all its texts
  std::set<Term> options;              ///< of the names and values of its options
  std::set<Term> name;                 ///< of its name
  std::vector<std::set<Term>> phrases; ///< of each short text, the name among them
};

/// Products of single letters as words, for what people write in formulas: "ax" of "y = 2 A x + b".
std::string letterRuns(llvm::StringRef text);

class TextIndex {
public:
  static llvm::Expected<std::unique_ptr<TextIndex>> create(const Library &library);
  ~TextIndex();

  /// The terms of a text, in their order; those of function words are left out.
  llvm::Expected<std::vector<Term>> terms(llvm::StringRef text);
  /// BM25 of one word in every operation's texts, by the operation's place in operations(). Higher is better.
  llvm::Expected<std::map<size_t, double>> rank(llvm::StringRef word);
  /// How much a term tells: the logarithm of how few operations have it. Words of no operation tell the most.
  double weight(const Term &term) const;
  /// Known words for one that no text has: its parts ("Transpose2d"), or the one word that is spelled almost like it.
  /// Nothing where there are none.
  llvm::Expected<std::vector<std::string>> knownWordsFor(llvm::StringRef word);
  /// A word for data of any kind ("values").
  bool isWeak(const Term &term) const;
  const std::vector<IndexedOperation> &operations() const { return indexed; }

private:
  enum class Kind { Name, Short, Long, Options };
  struct Place {
    size_t operation;
    Kind kind;
  };
  TextIndex();
  llvm::Error insert(const char *sql, llvm::StringRef text);
  llvm::Error insertTexts(const Library &library);
  llvm::Error fill(const Library &library);

  static constexpr double weakWeight = 0.8; ///< of words for data of any kind
  struct Database;
  std::unique_ptr<Database> database;
  std::vector<IndexedOperation> indexed;
  std::vector<Place> places;          ///< whose the rows of the table of texts are
  std::map<Term, unsigned> frequency; ///< in how many operations
  std::set<std::string> vocabulary;   ///< the texts' words, in lower case
  std::set<Term> functionWords, weakWords;
};

} // namespace optiml::gen

#endif
