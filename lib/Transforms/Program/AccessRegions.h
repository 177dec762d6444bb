//===- AccessRegions.h - which cells of a grid a kernel accesses -*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_ACCESSREGIONS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_ACCESSREGIONS_H

#include "optiml/Analysis/GridLayout.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/TimeSteps.h"

namespace optiml {

/// Text of a polynomial of parameters and extents for a condition on a launch.
std::optional<std::string> launchText(const KernelModel &model, Poly p);

/// A global index in `e` itself, as the cell's index in the new kernel, where `inIndex` says that it stands in text of
/// OptiML's own; null for anything else.
ExprRef atCell(const ExprRef &e, const TimeStep &step, bool inIndex);
/// The same for all of them in `e`.
ExprRef atCells(const ExprRef &e, const TimeStep &step, bool inIndex);

/// Sets of cells, as conjunctions of p >= 0 over local coordinates (coordinate(d)) and what is the same for all
/// threads.
class AccessRegions {
public:
  /// `plain` makes polynomials of what depends on the launch alone.
  AccessRegions(const KernelModel &model, const GridLayout &layout, std::function<Poly(const Poly &)> plain)
      : model(model), layout(layout), plain(std::move(plain)) {}
  /// When `condition` is `taken`: one of these conjunctions holds, and none otherwise. Nothing when it is not made of
  /// affine comparisons.
  std::optional<std::vector<std::vector<Poly>>> alternatives(const ExprRef &condition, bool taken) const;
  /// Every cell on whose way to a store an inexact condition stands is stored either way.
  llvm::Error requireKnownStores(Stmt &body, const std::function<bool(const Stmt &)> &stores) const;
  /// Where `facts` hold: the cell with these indices.
  SetPiece piece(const std::vector<Poly> &facts, const std::vector<Poly> &indices) const;
  /// `ofThreads`: of cells that have a thread. NotApplicable when it is no union of a few affine sets.
  llvm::Expected<std::vector<std::vector<Poly>>> project(const std::vector<SetPiece> &pieces, bool ofThreads) const;
  /// All cells of a conjunction are in another one and have threads.
  bool within(const std::vector<Poly> &cells, std::vector<Poly> of) const;
  std::string cxx(const std::vector<std::vector<Poly>> &set, const TimeStep &step) const;
  /// Takes away guards that hold for every cell that is stored.
  void dropGuards(Stmt &body, const std::function<bool(const Stmt &)> &stores) const;

private:
  enum class Stored { Never, Known, Always, Unknown };
  Stored stored(Stmt &s, const std::function<bool(const Stmt &)> &stores) const;
  /// Products of what is the same for all threads are atoms of their own for isl.
  Poly affine(const Poly &p) const;
  Poly unaffine(Poly p) const;
  bool isIndex(const std::string &atom) const;

  const KernelModel &model;
  const GridLayout &layout;
  std::function<Poly(const Poly &)> plain;
  mutable std::map<std::string, Poly> products;
};

} // namespace optiml

#endif
