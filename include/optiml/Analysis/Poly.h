//===- Poly.h - integer polynomials over symbols ----------------*- C++ -*-===//
//
// The normal form of index arithmetic: a sum of integer multiples of products of atoms. An atom is a name
// ("threadIdx.x", "k", "N", "p.stride") or the text of a subexpression that is no polynomial ("{i / 2}"). Arithmetic is
// that of the integers: signed overflow is undefined in CUDA C++, and unsigned subtraction is kept as an opaque atom.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_POLY_H
#define OPTIML_ANALYSIS_POLY_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace optiml {

class Poly {
public:
  using Monomial = std::vector<std::string>; ///< sorted; empty for the constant term
  std::map<Monomial, int64_t> terms;         ///< no zero coefficients

  Poly() = default;
  Poly(int64_t constant);
  static Poly atom(const std::string &name);
  friend Poly operator+(const Poly &a, const Poly &b);
  friend Poly operator-(const Poly &a, const Poly &b);
  friend Poly operator*(const Poly &a, const Poly &b);
  bool operator==(const Poly &other) const = default;

  std::set<std::string> atoms() const;
  bool mentions(const std::string &atom) const;
  std::optional<int64_t> constant() const; ///< the value, when there are no atoms
  int64_t constantTerm() const;
  /// Coefficient of `atom` when the polynomial is linear in it (a polynomial in the other atoms); nothing otherwise.
  std::optional<Poly> coefficient(const std::string &atom) const;
  /// Every monomial is a single atom or the constant.
  bool isAffine() const;
  Poly substitute(const std::string &atom, const Poly &value) const;
  /// The terms whose monomial satisfies `keep`.
  Poly filter(const std::function<bool(const Monomial &)> &keep) const;
  std::string str() const;

private:
  void addTerm(const Monomial &monomial, int64_t coefficient);
};

/// p / by, where `by` is one product that divides every term.
std::optional<Poly> quotientOf(const Poly &p, const Poly &by);

} // namespace optiml

#endif
