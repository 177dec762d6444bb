//===- ReadWords.h - numbers, shapes and types in plain words ---*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_READWORDS_H
#define OPTIML_LIB_GENERATE_READWORDS_H

#include "optiml/Generate/Request.h"
#include <optional>

namespace optiml::gen {

/// A word, or a number or shape with the words around it.
struct Token {
  std::string text;           ///< in lower case; of a quantity: as it was written
  std::vector<double> values; ///< empty: a word; one: a number; several: a shape such as 4096x1024
  bool isAssigned = false;    ///< a quantity behind "=": the words before it are its names
  bool isLength = false;      ///< a number of things in a row: "1000 floats"
  bool isWord() const { return values.empty(); }
};

struct Reading {
  std::vector<Token> tokens;
  std::string type; ///< as typeNamed() has it; empty: none is said
  /// The words that are not part of a type, a number or a shape, in their order.
  std::vector<std::string> words() const;
};

Reading readWords(llvm::StringRef text);

/// Puts what was read into options of `operation`: by name ("rows=4096", "k of 16", "300 rows"), by the operation's
/// shape rules, and choices by their values. A lone number is the value of a lone option that must be given. Returns
/// what fits nowhere.
std::vector<std::string> bindOptions(const Reading &reading, const Operation &operation, const Library &library,
                                     Options &into);

struct FormulaMatch {
  Request request;  ///< the stage that has the same values, with the constants of the formula
  std::string rest; ///< the words behind the formula
};

/// Where the words hold an element-wise formula ("y = 2*x + y for 1M floats"): the stage of the library that has the
/// same values. Names are single letters, or alpha and beta. Equality is tested by evaluation at random points, under
/// all assignments of the formula's names and numbers to the stage's.
std::optional<FormulaMatch> matchFormula(llvm::StringRef words, const Library &library);

} // namespace optiml::gen

#endif
