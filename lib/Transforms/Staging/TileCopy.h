//===- TileCopy.h - from global to shared memory ----------------*- C++ -*-===//
//
// The copy of a tile that the threads of a block make together: straight into shared memory, or through registers or in
// the background, so that the next tile is on its way while this one is used. Elements that the original would not read
// are zero.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_TILECOPY_H
#define OPTIML_LIB_TRANSFORMS_STAGING_TILECOPY_H

#include "AsyncCopy.h"
#include "SharedTile.h"

namespace optiml {

/// Lets the tile be copied 16 bytes at once: records the conditions under which every such piece is aligned and is read
/// whole or not at all. `multiples`: atoms that are known to be multiples of something (the strip's start).
/// NotApplicable when that cannot be told, or the tile is not made of such pieces.
llvm::Error requireVectors(KernelState &state, const KernelModel &model, Tile &tile,
                           const std::map<std::string, int64_t> &multiples);

/// Statements that copy one tile by `threads` threads, of which `tid` is one.
class TileCopy {
public:
  /// New names join `taken`. The tile must stay where it is.
  TileCopy(std::set<std::string> &taken, const KernelModel &model, const Tile &tile, ExprRef tid, int64_t threads);

  /// Global to shared memory.
  std::vector<StmtRef> direct();
  /// Declares what a thread holds of the tile; fetch and store follow.
  std::vector<StmtRef> registers();
  /// Global memory to registers: the tile of the strip that begins at `start`, `strip` being the name of its start.
  std::vector<StmtRef> fetch(const std::string &strip, const Poly &start);
  /// Registers to shared memory.
  std::vector<StmtRef> store();
  /// Starts copying the tile of that strip into the tile's copy number `copy`.
  std::vector<StmtRef> background(AsyncCopy &async, const std::string &strip, const Poly &start, const ExprRef &copy);

private:
  /// `body` for each piece of this thread, the pieces' coordinates being declared before it.
  std::vector<StmtRef> forEachPiece(const std::function<std::vector<StmtRef>()> &body);
  /// Takes each part of the piece to where `put` puts it; zeros where the original would not read.
  std::vector<StmtRef> load(const std::string &strip, const Poly &start,
                            const std::function<std::vector<StmtRef>(const TilePart &, const ExprRef &)> &put) const;
  std::vector<StmtRef> put(const TilePart &part, const ExprRef &value);
  /// What the elements under the coordinates are read under; null: always.
  ExprRef guardOf(const std::string &strip, const Poly &start) const;
  /// The array's element `along` places after the one at the coordinates.
  ExprRef source(const std::string &strip, const Poly &start, unsigned along) const;
  static ExprRef memberOf(const ExprRef &element, const TilePart &part);
  /// The place in shared memory for it, in the tile's copy `copy` (null: there is one).
  ExprRef target(const TilePart &part, unsigned along, const ExprRef &copy) const;
  ExprRef heldPiece(const TilePart &part) const;
  Type pieceType(const TilePart &part) const;
  /// The parts that come in pieces of their own; for records that are copied at once, one for all.
  std::vector<const TilePart *> pieceParts() const;

  std::set<std::string> &taken;
  const KernelModel &model;
  const Tile &tile;
  ExprRef tid;
  int64_t threads, pieces, trips;
  std::vector<unsigned> order; ///< dimensions, the array's fastest last
  std::map<std::string, ExprRef> coordinates;
  std::vector<std::string> places;              ///< what the boundaries' rules are applied to
  std::string counter;                          ///< the loop's variable
  std::map<const TilePart *, std::string> held; ///< the registers
};

} // namespace optiml

#endif
