//===- ArrayFolds.h - sums in arrays of one thread --------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_ARRAYFOLDS_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_ARRAYFOLDS_H

#include "Reduction.h"

namespace optiml {

/// A private array with whose elements a loop does nothing but fold values into them, all in one way.
struct ArrayFold {
  std::string array;
  Type type;
  Fold fold;
  std::vector<ExprRef> extents; ///< constants
};

/// Those that are declared outside of the loop. With `strictFloat` none whose order would change its values.
std::vector<ArrayFold> findArrayFolds(Kernel &kernel, const StmtRef &loop, bool strictFloat);

/// Lets the loop fold into an array of its own; `before` and `after` get what makes that of the threads of a group
/// (within a warp) one. New names are chosen beside `taken`.
void foldIntoOwn(const ArrayFold &fold, Stmt &loop, Combiner &combiner, std::set<std::string> &taken,
                 std::vector<StmtRef> &before, std::vector<StmtRef> &after);

} // namespace optiml

#endif
