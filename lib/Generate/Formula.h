//===- Formula.h - formulas of a request ------------------------*- C++ -*-===//
//
// "y[i] = a*x[i] + y[i]", "c_ij = sum_k a_ik * b_kj", "exp(x) / sum(exp(x))": a request may say in a formula what it
// wants. It is parsed, evaluated at random values beside the formulas of the library's operations (keys "expr" and
// "formula"), and the operation that gives the same values is put into words in its place.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_FORMULA_H
#define OPTIML_LIB_GENERATE_FORMULA_H

#include "optiml/Generate/Operation.h"
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace optiml::gen {

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  enum class Kind {
    Number, ///< value
    Name,   ///< a scalar, an index, or an array all of whose elements are meant
    Index,  ///< name[args...]
    Call,   ///< name(args...); "+", "-", "*", "/", "^", ">", "?:" … are calls, too
    Reduce, ///< name ("sum", "prod", "max", "min", "mean") over an index args[0] of args[1], from args[2] to args[3]
            ///< where they are given
  } kind = Kind::Number;
  std::string name;
  double value = 0;
  std::vector<ExprPtr> args;
};

/// "target[subscripts] = value"; without a target: an expression alone.
struct Formula {
  ExprPtr target; ///< Name or Index; null: none
  bool accumulates = false;
  ExprPtr value;
};

/// The formula at the beginning of `text` and its length; nothing when there is none. Names are lower case in it.
std::optional<std::pair<Formula, size_t>> parseFormula(llvm::StringRef text);

/// Whether both give the same values for all arrays; `reals` are the names of `known` that may stand for a number of
/// `asked`, whose values come back (no entry: a name of `asked` stands for it).
std::optional<std::map<std::string, double>> sameFormula(const Formula &asked, const Formula &known,
                                                         const std::vector<std::string> &reals);

/// The coefficients of 1, x, x^2 and x^3 where `expr` is such a polynomial of the elements of one array.
std::optional<std::vector<double>> polynomialOf(const Expr &expr);

/// `text` with a product of matrices or of a matrix and a vector ("C = A B^T", "y = A x") in words.
std::string matrixProductsInWords(llvm::StringRef text);

/// `text` with the formulas that mean an operation in that operation's words.
std::string formulasInWords(llvm::StringRef text, const Library &library);

/// The operation that has the values of `formula`, in words; nothing where there is none.
std::optional<std::string> wordsOfFormula(const Formula &formula, const Library &library);

/// `text` with the formulas that are said in words ("one over one plus x") in the words of what they mean.
std::string spokenFormulas(llvm::StringRef text, const Library &library);

} // namespace optiml::gen

#endif
