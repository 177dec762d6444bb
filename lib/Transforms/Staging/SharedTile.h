//===- SharedTile.h - what a block stages of one array ----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_SHAREDTILE_H
#define OPTIML_LIB_TRANSFORMS_STAGING_SHAREDTILE_H

#include "optiml/Analysis/BoundaryCondition.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Support/Error.h"
#include <map>

namespace optiml {

/// A value that runs over a constant range within what a block stages at once: a thread index or a loop.
struct Runner {
  std::string atom;
  int64_t count;             ///< number of values
  int64_t low = 0, step = 1; ///< low, low + step, …
};

/// What is staged of a strip-mined loop at a time.
struct Strip {
  const Stmt *loop;
  CountedLoop counted;
  std::string var; ///< name of the loop over the strips
  int64_t size;    ///< iterations of a strip
};

/// One dimension of a staged tile.
struct TileDim {
  Poly stride; ///< in elements of the array
  int64_t low = 0, extent = 1;
  bool alongLoop = false; ///< varies with the strip-mined loop
};

/// The array in shared memory for a member of the elements (of a plain array: for the elements).
struct TilePart {
  std::string name;
  std::vector<ExprRef> members; ///< from the element to the member, outermost first
  Type type;
  unsigned place = 0; ///< of a number in a record that is copied as a vector
};

/// A boundary rule of a tile's reads: what an element holds is what the rule finds for its coordinate.
struct TileBoundary {
  BoundaryCondition rule; ///< its coordinate is that of the element with local coordinates 0
  unsigned dim = 0;       ///< the dimension along which the coordinate runs
  int64_t unit = 0;       ///< by so much from one element to the next; 0: it is the same for all
};

/// What a block stages of one array in one strip. A record's members go to arrays of their own: no bank conflicts
/// between records, and neighbouring numbers can be read at once.
struct Tile {
  std::string array;
  std::vector<TilePart> parts;
  ExprRef root;
  bool wideIndex = false;               ///< the source indexes it with 64 bits
  Poly base;                            ///< linear index of the element with local coordinates 0
  std::vector<TileDim> dims;            ///< outermost stride first
  std::vector<TileBoundary> boundaries; ///< `base` and `dims` are as if the coordinates stood in their places
  std::vector<unsigned> layout;         ///< order in shared memory, outermost first
  /// Over the local coordinates "@0", "@1", …: an element is loaded where one of these conjunctions of c >= 0 holds.
  std::vector<std::vector<Poly>> guards;
  int64_t pad = 0;
  unsigned vector = 1;  ///< elements that are copied at once along the dimension of stride 1
  unsigned numbers = 1; ///< of an element, which are copied at once
  unsigned copies = 1;  ///< of the tile, for strips that are on their way
  ExprRef copy;         ///< the number of the one that is read; null where there is one only
  bool copiesRecords() const { return numbers > 1; }
  std::vector<const Access *> accesses;
  std::map<const Access *, std::vector<Poly>> coordinates;
  int64_t reads = 0; ///< of a block while the tile is in use, as far as trip counts are known
  int64_t elements() const {
    int64_t n = 1;
    for (const TileDim &d : dims)
      n *= d.extent;
    return n;
  }
  int64_t bytes() const {
    int64_t inner = dims[layout.back()].extent, element = 0;
    for (const TilePart &part : parts)
      element += part.type.bytes;
    return copies * (elements() / inner * (inner + pad) * element);
  }
  /// Elements in 16 bytes, of the largest part.
  int64_t unit() const {
    unsigned largest = 1;
    for (const TilePart &part : parts)
      largest = std::max(largest, part.type.bytes);
    return 16 / largest;
  }
};

/// The atom that stands for a local coordinate of a tile.
inline std::string coordinate(size_t i) { return "@" + std::to_string(i); }

/// Numbers of the dimensions with these strides, the largest stride first.
std::vector<unsigned> bySize(const std::vector<Poly> &strides);

/// The tiles of the arrays for one strip of a loop, or (null) for all that a block reads of them: one for each family
/// of an array's reads at constant distances. Records in `state` that the kernel writes nothing that overlaps the
/// arrays. NotApplicable when a family reads no affine box, or there are too many.
llvm::Expected<std::vector<Tile>> planTiles(KernelState &state, const KernelModel &model,
                                            llvm::ArrayRef<llvm::StringRef> arrays, const Strip *strip);

/// Names the parts after the array, their members and `suffix`; the names join `taken` and `names`.
void nameTile(Tile &tile, const std::string &suffix, std::set<std::string> &taken, std::set<std::string> &names);
/// Shared memory for the tile.
std::vector<StmtRef> tileDeclarations(const Tile &tile);
/// The element of the tile that an access reads: what replaces its place.
ExprRef tileElement(const KernelModel &model, const Tile &tile, const Access &access);
/// threadIdx.x + threadIdx.y * … : the number of a thread in a block of this shape.
ExprRef linearThread(const std::array<int64_t, 3> &shape);
/// A loop of the block's threads together over 0 … count - 1.
StmtRef sharedLoop(const std::string &counter, int64_t count, const std::array<int64_t, 3> &shape, StmtRef body);

} // namespace optiml

#endif
