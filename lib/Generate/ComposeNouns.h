//===- ComposeNouns.h - what is named of the values -------------*- C++ -*-===//
//
// The part of Compose.cpp that reads nouns: objects, functions, folds, and what they are of.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_COMPOSENOUNS_H
#define OPTIML_LIB_GENERATE_COMPOSENOUNS_H

#include "ComposeSteps.h"
#include "SpokenWords.h"

namespace optiml::gen {

class ComposedNouns : public SpokenWords {
public:
  using SpokenWords::SpokenWords;

protected:
  bool atSeparator() const;
  bool atAfter() const;
  bool separator();
  void setAxis(llvm::StringRef axis);
  /// "for every row", "per column", "row by row".
  bool scope();
  bool isScopeEnd(size_t next) const;
  /// "each entry", "it", "the values of every row": what a step works on; nothing is fine, too.
  bool object();
  /// "each logit": whatever the values are called.
  bool isNoun(size_t begin);
  /// A function of elements by its name: "square root", "absolute value".
  std::string function();
  /// What makes one number of many: "sum", "largest value", "euclidean norm".
  std::string fold();
  /// "the sum", "its own mean", "the square root of the sum of the squares": of the values that there are.
  std::optional<std::vector<Step>> aggregate();
  /// "the square root of the sum of the squares", "largest absolute value in each column".
  bool noun(unsigned depth = 0);
  /// "… divided by the standard deviation": two numbers of the same values.
  void combined();
  bool isLast(size_t place) const;
  /// "the (squared) differences of two arrays".
  bool inPair();
  bool tailBetween();

  Composition result;
  bool isContradictory = false; ///< both rows and columns are meant
};

} // namespace optiml::gen

#endif
