//===- GridLayout.h - where the cells of a grid lie -------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_GRIDLAYOUT_H
#define OPTIML_ANALYSIS_GRIDLAYOUT_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// A cell's place in memory by the launch's global indices: Σ stride * (index + shift).
struct GridLayout {
  struct Dimension {
    unsigned axis = 0;
    Poly stride, shift;
    /// How many cells there are before the next dimension's index changes; the last dimension has none.
    std::optional<Poly> length;
    Poly extent; ///< number of threads
    Poly index() const { return Poly::atom(std::string("globalIdx.") + char('x' + axis)); }
  };
  std::vector<Dimension> dims; ///< the fastest first
  /// A distance in memory as a distance along each dimension.
  std::vector<Poly> along(Poly distance) const;
};

/// Of parameters alone.
bool isUniform(const KernelModel &model, const Poly &p);
/// a / b where it leaves no rest.
std::optional<Poly> quotient(const Poly &a, const Poly &b);

/// The layout of a thread's own element. NotApplicable when the indices are no coordinates.
llvm::Expected<GridLayout> gridLayout(const KernelModel &model, const Poly &own);

} // namespace optiml

#endif
