//===- Polynomial.cpp - formulas that are polynomials of one value ----------===//
#include "Formula.h"
#include <cmath>

using namespace optiml::gen;

namespace {

using Coefficients = std::vector<double>;
constexpr size_t highest = 3;

std::optional<Coefficients> product(const Coefficients &a, const Coefficients &b) {
  Coefficients result(a.size() + b.size() - 1, 0);
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j)
      result[i + j] += a[i] * b[j];
  return result.size() <= highest + 1 ? std::optional(result) : std::nullopt;
}

/// Of the elements `name` of one array, with their subscripts; empty: not known yet.
std::optional<Coefficients> coefficientsOf(const Expr &expr, std::string &name) {
  if (expr.kind == Expr::Kind::Number)
    return Coefficients{expr.value};
  if (expr.kind == Expr::Kind::Index) {
    std::string place = expr.name;
    for (const ExprPtr &subscript : expr.args) {
      if (subscript->kind != Expr::Kind::Name)
        return std::nullopt;
      place += " " + subscript->name;
    }
    if (!name.empty() && name != place)
      return std::nullopt;
    name = place;
    return Coefficients{0, 1};
  }
  if (expr.kind != Expr::Kind::Call || expr.args.empty() || expr.args.size() > 2)
    return std::nullopt;
  std::optional<Coefficients> left = coefficientsOf(*expr.args[0], name);
  if (!left)
    return std::nullopt;
  if (expr.args.size() == 1)
    return expr.name == "-" ? product(*left, {-1}) : std::nullopt;
  std::optional<Coefficients> right = coefficientsOf(*expr.args[1], name);
  if (!right)
    return std::nullopt;
  if (expr.name == "+" || expr.name == "-") {
    left->resize(std::max(left->size(), right->size()), 0);
    for (size_t i = 0; i < right->size(); ++i)
      (*left)[i] += expr.name == "+" ? (*right)[i] : -(*right)[i];
    return left;
  }
  if (expr.name == "*")
    return product(*left, *right);
  double number = right->size() == 1 ? right->front() : NAN;
  if (expr.name == "/")
    return number != 0 && std::isfinite(number) ? product(*left, {1 / number}) : std::nullopt;
  if (expr.name != "^" || !(number >= 1 && number <= double(highest)) || number != std::floor(number))
    return std::nullopt;
  std::optional<Coefficients> power = left;
  for (int i = 1; i < int(number) && power; ++i)
    power = product(*power, *left);
  return power;
}

} // namespace

std::optional<std::vector<double>> optiml::gen::polynomialOf(const Expr &expr) {
  std::string name;
  std::optional<Coefficients> result = coefficientsOf(expr, name);
  if (!result || name.empty())
    return std::nullopt;
  result->resize(highest + 1, 0);
  return result;
}
