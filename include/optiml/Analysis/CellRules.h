//===- CellRules.h - neighbours across the edges of a grid ------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_CELLRULES_H
#define OPTIML_ANALYSIS_CELLRULES_H

#include "BoundaryCondition.h"
#include "GridLayout.h"

namespace optiml {

/// What an index is where some facts hold.
struct IndexCase {
  Poly value;
  std::vector<Poly> facts;
  std::optional<Poly> modulus; ///< the index is its remainder, `value` not being negative
};

/// Where a read lies along one dimension, seen from the thread's own cell.
struct CellDistance {
  Poly distance;                         ///< of a plain read, or around a ring
  std::optional<BoundaryCondition> rule; ///< of one that stays near by a rule: the index is rule + distance
  std::optional<Poly> ring;              ///< of one around a ring: so many cells
  std::vector<IndexCase> cases;          ///< of the index, as global indices count
  int64_t low = 0, high = 0;             ///< from -low to high
};

/// The value of a rule at its coordinate, case by case; nothing when it is not understood.
std::optional<std::vector<IndexCase>> ruleCases(const KernelModel &model, const BoundaryCondition &rule);

/// Reads how far `index` is from the own cell `own`. `facts` hold where it is read, loops' bounds included; `cells` is
/// what the grid has along each dimension, where that is known. NotApplicable when it is no constant distance, nor by a
/// rule.
llvm::Expected<std::vector<CellDistance>> cellDistances(const KernelModel &model, const GridLayout &layout,
                                                        const Poly &own, Poly index, const std::vector<Poly> &facts,
                                                        const std::vector<std::optional<Poly>> &cells);

} // namespace optiml

#endif
