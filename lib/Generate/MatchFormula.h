//===- MatchFormula.h - formulas among plain words --------------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_MATCHFORMULA_H
#define OPTIML_LIB_GENERATE_MATCHFORMULA_H

#include "optiml/Generate/Request.h"
#include <optional>

namespace optiml::gen {

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
