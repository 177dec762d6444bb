//===- FlatIndex.h - one index for the cells of a grid ----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_FLATINDEX_H
#define OPTIML_LIB_TRANSFORMS_FLATINDEX_H

#include "Common.h"

namespace optiml {

/// A row of threads for the cells of a grid: i % width and i / width are a cell's coordinates, and i < width * height.
struct FlatIndex {
  Poly width, height;
};

/// Writes such a kernel as one over two indices, globalIdx.x and globalIdx.y; nothing when it is none.
std::optional<FlatIndex> takeApartFlatIndex(Kernel &kernel);

} // namespace optiml

#endif
