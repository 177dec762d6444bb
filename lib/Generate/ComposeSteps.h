//===- ComposeSteps.h - steps that make one formula -------------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_COMPOSESTEPS_H
#define OPTIML_LIB_GENERATE_COMPOSESTEPS_H

#include "Formula.h"
#include "optiml/Generate/Words.h"
#include <functional>

namespace optiml::gen {

/// What an index has at its place: the values that a step starts from or ends with. A single number has the same
/// everywhere.
struct Values {
  std::function<ExprPtr(const std::string &index)> at;
  bool isNumber = false;
};

/// One step over all values.
struct Step {
  std::function<Values(const Values &)> apply;
  std::string fold = {};   ///< its name ("sum"), where it is nothing else
  bool folds = false;      ///< makes one number of them
  bool aggregates = false; ///< uses one ("divide by the sum")
  bool hasSecond = false;  ///< uses a second array
};

/// A function of elements ("sqrt", "square", "1/", "-").
Step applying(const std::string &function);
/// One of "sum", "prod", "max", "min", "mean", "norm", "var", "std", "rms".
Step folding(const std::string &fold);
/// One of "+-*/^" with a number, with the second array, with what other steps make of the values.
Step withNumber(char sign, double number);
Step withArray(char sign);
Step withAggregate(char sign, std::vector<Step> steps);
/// What `first` makes of the values with what `second` makes of them.
Step together(char sign, std::vector<Step> first, std::vector<Step> second);

struct Composition {
  std::vector<Step> steps;
  std::string axis;    ///< "row", "column", or nothing
  unsigned inputs = 1; ///< arrays that it names
  bool isOfMatrix = false;
};

/// The operation of the library that it means, with the stages before and after it, in words; "formula" where it is one
/// that the library does not have. Nothing where it is too little to tell.
std::optional<std::string> meaningOf(const Composition &composition, const Library &library);

/// `request` in the words of what its steps mean (Compose.cpp); as it is where it says more than steps.
std::string compositionsInWords(llvm::StringRef request, const Library &library, const Vocabulary &vocabulary);

/// `request` in the words of what it says of values of several kinds (Piecewise.cpp): "negative values become 0".
std::string piecesInWords(llvm::StringRef request, const Library &library, const Vocabulary &vocabulary);

/// `request` in the name of the scan that it describes by what one output is (Running.cpp).
std::string runningInWords(llvm::StringRef request, const Vocabulary &vocabulary);

/// `request` with what it says step by step, piece by piece or output by output in the words of what it means.
std::string descriptionsInWords(llvm::StringRef request, const Library &library, const Vocabulary &vocabulary);

} // namespace optiml::gen

#endif
