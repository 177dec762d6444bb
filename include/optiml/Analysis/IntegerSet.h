//===- IntegerSet.h - projections of integer sets, by isl -------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_INTEGERSET_H
#define OPTIML_ANALYSIS_INTEGERSET_H

#include "optiml/Analysis/Poly.h"
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// One piece of a set to be projected: { [dimensions] : exists `hidden` : dimensions[i] == values[i] and all facts >= 0
/// }.
struct SetPiece {
  std::vector<Poly> values;
  std::vector<Poly> facts;
};

/// The projection of the union of `pieces` on its dimensions, as a conjunction of c >= 0 over `dimensions` and the
/// atoms that are not `hidden`, leaving out what `context` (facts >= 0 over the same names) already says. Exact:
/// nothing when the projection is not one convex integer set, or when a polynomial is not affine.
std::optional<std::vector<Poly>> projectSet(const std::vector<std::string> &dimensions,
                                            const std::vector<std::string> &hidden, const std::vector<SetPiece> &pieces,
                                            const std::vector<Poly> &context);

/// The same as a union of at most `most` convex sets: an element is in the projection when one of the conjunctions
/// holds.
std::optional<std::vector<std::vector<Poly>>> projectSets(const std::vector<std::string> &dimensions,
                                                          const std::vector<std::string> &hidden,
                                                          const std::vector<SetPiece> &pieces,
                                                          const std::vector<Poly> &context, unsigned most);

/// Whether no integers make all of `facts` >= 0. Products of atoms count as values of their own, of which nothing is
/// known: true is a proof, false is not.
bool isEmptySet(const std::vector<Poly> &facts);

} // namespace optiml

#endif
