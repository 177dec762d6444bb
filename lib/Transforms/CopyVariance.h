//===- CopyVariance.h - which copies of a local are alike -------*- C++ -*-===//
//
// KernelModel::varies counts every condition under which a local is assigned: what is summed up under `row < m && col <
// n` differs along both axes. Where the local is declared under that condition, too, nobody looks at it elsewhere, and
// a sum over the row is the same for all columns. Here only conditions within the block of the declaration count.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COPYVARIANCE_H
#define OPTIML_LIB_TRANSFORMS_COPYVARIANCE_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

class CopyVariance {
public:
  CopyVariance(const Kernel &kernel, const KernelModel &model);
  /// Axes (of KernelModel::varies) along which the value may differ between threads that run the block of its
  /// declaration.
  unsigned ofName(const std::string &name) const;
  unsigned of(const ExprRef &e) const;

private:
  void visit(Stmt &s);
  void raise(const std::string &name, unsigned mask);
  void raiseChanged(const ExprRef &e);
  unsigned conditionsSince(const std::string &name) const;

  const KernelModel &model;
  std::map<std::string, unsigned> masks;
  std::map<std::string, size_t> depths; ///< of declarations, in conditions around them
  std::vector<unsigned> conditions;     ///< along which axes those around the statement at hand differ
  bool changed = false;
};

} // namespace optiml

#endif
