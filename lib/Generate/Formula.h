//===- Formula.h - arithmetic expressions of requests -----------*- C++ -*-===//
//
// C's operators, with ^ and ** for powers and |x| for magnitudes, and functions of the mathematics library.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_FORMULA_H
#define OPTIML_LIB_GENERATE_FORMULA_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace optiml::gen {

struct FormulaNode {
  enum class Kind { Number, Name, Call, Unary, Binary, Conditional } kind = Kind::Number;
  std::string text; ///< the number as it is written, a name, a function or an operator
  std::vector<std::unique_ptr<FormulaNode>> operands;
};
using Formula = std::unique_ptr<FormulaNode>;

/// The right side of "out[i] = a * x[i] + y[i]"; a text without "=" is all of it. Subscripts [i] are dropped: the work
/// is element-wise, and any other subscript is an error.
llvm::Expected<Formula> parseFormula(llvm::StringRef text);

/// Its names in the order in which they come first.
std::vector<std::string> namesIn(const FormulaNode &formula);

/// Its value; NaN where a name has none.
double evaluate(const FormulaNode &formula, const std::map<std::string, double> &values);

/// As an operation's text: literals and functions become ${placeholders}, and names become what `renamed` says.
std::string asTemplate(const FormulaNode &formula, const std::map<std::string, std::string> &renamed);

/// A function that ${placeholders} know, too.
bool isMathFunction(llvm::StringRef name);

} // namespace optiml::gen

#endif
