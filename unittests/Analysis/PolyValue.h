//===- PolyValue.h - the value of a polynomial at a point -------*- C++ -*-===//
#ifndef OPTIML_UNITTESTS_ANALYSIS_POLYVALUE_H
#define OPTIML_UNITTESTS_ANALYSIS_POLYVALUE_H

#include "optiml/Analysis/Poly.h"

namespace optiml {

/// Its value with the names standing for these numbers.
inline int64_t valueOf(const Poly &p, const std::map<std::string, int64_t> &at) {
  int64_t sum = 0;
  for (const auto &[monomial, coefficient] : p.terms) {
    int64_t product = coefficient;
    for (const std::string &name : monomial)
      product *= at.at(name);
    sum += product;
  }
  return sum;
}

} // namespace optiml

#endif
