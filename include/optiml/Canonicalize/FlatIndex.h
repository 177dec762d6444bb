//===- FlatIndex.h - one index for the cells of a grid ----------*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_FLATINDEX_H
#define OPTIML_CANONICALIZE_FLATINDEX_H

#include "optiml/Analysis/Poly.h"
#include "optiml/Analysis/Tree.h"

namespace optiml {

/// A row of threads for the cells of a grid: i % width and i / width are a cell's coordinates, and i < width * height.
/// Other divisors are multiples of the width.
struct FlatIndex {
  Poly width, height;
  /// What i is compared with, where that is no product with the width ("i < total"). The rows are whole where the width
  /// divides it; `height` is nothing then.
  ExprRef end;
};

/// Writes such a kernel, whose i is the global index of `axis`, as one over two: that of `axis` and that of the next;
/// nothing when it is none. `anyEnd`: also where FlatIndex::end says something, which the caller must ask of a launch.
std::optional<FlatIndex> takeApartFlatIndex(Kernel &kernel, unsigned axis = 0, bool anyEnd = false);

} // namespace optiml

#endif
