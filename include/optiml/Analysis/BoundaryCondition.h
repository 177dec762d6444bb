//===- BoundaryCondition.h - indices at the edges of an array ---*- C++ -*-===//
//
// Stencils and filters read beyond the edge by a rule: clamp(x + k, 0, w - 1), mirrored, or in a ring, (x + k + w) % w.
// What counts for staging is the coordinate that the rule is applied to: that is affine, and a tile is laid out by it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_BOUNDARYCONDITION_H
#define OPTIML_ANALYSIS_BOUNDARYCONDITION_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// A part of an index: `stride` times what a pure rule makes of a coordinate.
struct BoundaryCondition {
  Poly stride;
  Poly coordinate; ///< affine; a signed integer
  ExprRef rule;    ///< over `name()`, which stands for the coordinate; what else it names is the same for all threads
  Type type;       ///< of the coordinate
  static constexpr const char *name() { return "@at"; }
  /// Equal for parts that differ only in their coordinate.
  std::string signature() const;
  /// The rule's value at `at`.
  ExprRef at(const ExprRef &at) const;
};

/// Takes the rules out of an index, in which their coordinates take their place. What is not understood stays as it is.
/// Ordered by signature.
std::vector<BoundaryCondition> takeBoundaryConditions(const KernelModel &model, Poly &index);

} // namespace optiml

#endif
