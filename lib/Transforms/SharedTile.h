//===- SharedTile.h - what a block stages of one array ----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_SHAREDTILE_H
#define OPTIML_LIB_TRANSFORMS_SHAREDTILE_H

#include "Common.h"
#include "optiml/Analysis/KernelModel.h"
#include <map>

namespace optiml {

/// A value that runs over a constant range within one strip of one block: a thread index or an inner loop.
struct Runner {
  std::string atom;
  int64_t count; ///< 0 .. count-1
};

/// One dimension of a staged tile.
struct TileDim {
  Poly stride;         ///< in elements of the array
  int64_t low = 0, extent = 1;
  bool alongLoop = false; ///< varies with the strip-mined loop
};

/// What a block stages of one array in one strip.
struct Tile {
  std::string array, name;
  Type element;
  ExprRef root;
  bool wideIndex = false;    ///< the source indexes it with 64 bits
  Poly base;                 ///< linear index of the element with local coordinates 0
  std::vector<TileDim> dims; ///< outermost stride first
  std::vector<unsigned> layout; ///< order in shared memory, outermost first
  std::vector<Poly> guard;   ///< over the local coordinates "@0", "@1", …
  int64_t pad = 0;
  unsigned vector = 1;       ///< elements that are copied at once along the dimension of stride 1
  std::vector<const Access *> accesses;
  std::map<const Access *, std::vector<Poly>> coordinates;
  int64_t elements() const {
    int64_t n = 1;
    for (const TileDim &d : dims)
      n *= d.extent;
    return n;
  }
  int64_t bytes() const {
    int64_t inner = dims[layout.back()].extent;
    return elements() / inner * (inner + pad) * element.bytes;
  }
};

/// The atom that stands for a local coordinate of a tile.
inline std::string coordinate(size_t i) { return "@" + std::to_string(i); }

/// The tile of one array for one strip of `loop`; NotApplicable when what the block reads is no affine box.
llvm::Expected<Tile> planTile(const KernelModel &model, const std::string &array, const Stmt *loop,
                              const CountedLoop &counted, const std::string &stripVar, int64_t tileSize);

} // namespace optiml

#endif
