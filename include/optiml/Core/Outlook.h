//===- Outlook.h - what recipes promise before they are tried ---*- C++ -*-===//
#ifndef OPTIML_CORE_OUTLOOK_H
#define OPTIML_CORE_OUTLOOK_H

#include "optiml/Core/Interfaces.h"

namespace optiml {

/// A recipe that may be evaluated next.
struct Prospect {
  Recipe recipe;
  Recipe basis;      ///< the line or variant that it is a variation of; or itself
  unsigned rank = 0; ///< of that line in the opening book: earlier ones promise more
};

/// Knows how recipes fared before, on kernels like these and in this search. Called from the thread that searches.
class Outlook {
public:
  virtual ~Outlook() = default;
  /// Whether there is anything to go by; else the others have nothing to say.
  virtual bool knowsAnything() const = 0;
  /// The numbers of at most `most` prospects that are worth an evaluation each, in the order in which to begin them.
  virtual std::vector<size_t> choose(const std::vector<Prospect> &prospects, size_t most) const = 0;
  /// The recipe that led to `end`, with its details (parameters, steps that only trim) as they did best elsewhere.
  virtual Recipe tuned(const SearchState &end) const = 0;
  /// Recipes that differ from it by one detail which was worth something elsewhere, the most promising first.
  virtual std::vector<Recipe> variations(const SearchState &end) const = 0;
};

} // namespace optiml

#endif
