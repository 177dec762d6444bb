//===- Outlook.h - what recipes promise before they are tried ---*- C++ -*-===//
#ifndef OPTIML_CORE_OUTLOOK_H
#define OPTIML_CORE_OUTLOOK_H

#include "optiml/Core/Action.h"

namespace optiml {

/// Knows how recipes on kernels like these fared before. Called from the thread that searches.
class Outlook {
public:
  virtual ~Outlook() = default;
  /// Of each recipe log2(its time / the best's), as far as that can be told before it is evaluated: from kernels like
  /// these, and from what this search has seen so far. Where little is known, earlier ones promise more. Empty: nothing
  /// is known.
  virtual std::vector<double> expectedLosses(const std::vector<Recipe> &recipes) const = 0;
};

} // namespace optiml

#endif
