//===- Poly.cpp - integer polynomials over symbols ------------------------===//
#include "optiml/Analysis/Poly.h"
#include <algorithm>

using namespace optiml;

Poly::Poly(int64_t constant) { addTerm({}, constant); }

Poly Poly::atom(const std::string &name) {
  Poly p;
  p.addTerm({name}, 1);
  return p;
}

void Poly::addTerm(const Monomial &monomial, int64_t coefficient) {
  auto [it, inserted] = terms.emplace(monomial, coefficient);
  if (!inserted)
    it->second += coefficient;
  if (it->second == 0)
    terms.erase(it);
}

namespace optiml {
Poly operator+(const Poly &a, const Poly &b) {
  Poly r = a;
  for (const auto &[m, c] : b.terms)
    r.addTerm(m, c);
  return r;
}
Poly operator-(const Poly &a, const Poly &b) {
  Poly r = a;
  for (const auto &[m, c] : b.terms)
    r.addTerm(m, -c);
  return r;
}
Poly operator*(const Poly &a, const Poly &b) {
  Poly r;
  for (const auto &[ma, ca] : a.terms)
    for (const auto &[mb, cb] : b.terms) {
      Poly::Monomial m = ma;
      m.insert(m.end(), mb.begin(), mb.end());
      std::sort(m.begin(), m.end());
      r.addTerm(m, ca * cb);
    }
  return r;
}
} // namespace optiml

std::set<std::string> Poly::atoms() const {
  std::set<std::string> result;
  for (const auto &[m, c] : terms)
    result.insert(m.begin(), m.end());
  return result;
}

bool Poly::mentions(const std::string &atom) const { return atoms().count(atom) != 0; }

std::optional<int64_t> Poly::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

int64_t Poly::constantTerm() const {
  auto it = terms.find({});
  return it == terms.end() ? 0 : it->second;
}

std::optional<Poly> Poly::coefficient(const std::string &atom) const {
  Poly result;
  for (const auto &[m, c] : terms) {
    auto count = std::count(m.begin(), m.end(), atom);
    if (count == 0)
      continue;
    if (count > 1)
      return std::nullopt;
    Monomial rest = m;
    rest.erase(std::find(rest.begin(), rest.end(), atom));
    result.addTerm(rest, c);
  }
  return result;
}

bool Poly::isAffine() const {
  return std::all_of(terms.begin(), terms.end(), [](const auto &t) { return t.first.size() <= 1; });
}

Poly Poly::substitute(const std::string &atom, const Poly &value) const {
  Poly result;
  for (const auto &[m, c] : terms) {
    Poly product(c);
    for (const std::string &a : m)
      product = product * (a == atom ? value : Poly::atom(a));
    result = result + product;
  }
  return result;
}

Poly Poly::filter(const std::function<bool(const Monomial &)> &keep) const {
  Poly result;
  for (const auto &[m, c] : terms)
    if (keep(m))
      result.addTerm(m, c);
  return result;
}

std::string Poly::str() const {
  std::string result;
  std::vector<std::pair<Monomial, int64_t>> ordered(terms.begin(), terms.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto &a, const auto &b) { // the constant last, positive first
                     return std::pair(a.first.empty(), a.second < 0) < std::pair(b.first.empty(), b.second < 0);
                   });
  for (const auto &[m, c] : ordered) {
    result += result.empty() ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + ");
    std::string product;
    for (const std::string &a : m)
      product += (product.empty() ? "" : "*") + a;
    uint64_t magnitude = c < 0 ? uint64_t(-c) : uint64_t(c);
    result += product.empty()  ? std::to_string(magnitude)
              : magnitude == 1 ? product
                               : std::to_string(magnitude) + "*" + product;
  }
  return result.empty() ? "0" : result;
}

std::optional<Poly> optiml::quotientOf(const Poly &p, const Poly &by) {
  if (by.terms.size() != 1)
    return std::nullopt;
  const auto &[divisor, factor] = *by.terms.begin();
  Poly result;
  for (const auto &[monomial, coefficient] : p.terms) {
    if (coefficient % factor || !std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end()))
      return std::nullopt;
    Poly term(coefficient / factor);
    Poly::Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
    for (const std::string &atom : rest)
      term = term * Poly::atom(atom);
    result = result + term;
  }
  return result;
}
