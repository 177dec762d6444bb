//===- ZeroPadding.h - tests that a tile's zeros stand for ------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_ZEROPADDING_H
#define OPTIML_LIB_TRANSFORMS_STAGING_ZEROPADDING_H

#include "SharedTile.h"

namespace optiml {

/// Tests around the reads of a tile that say whether the element is inside of the array: "is this row in the image?".
/// Outside, the tile holds zeros, so that what is added there changes nothing without the test either, as long as the
/// other factor is finite.
class ZeroPadding {
public:
  /// Looks for such tests, before the reads of the tiles are replaced: in the kernel, or under one of its loops.
  static ZeroPadding find(const KernelModel &model, const std::vector<Tile> &tiles, const Stmt *within = nullptr);
  bool isEmpty() const { return tests.empty(); }
  /// Once the reads are replaced: drops the tests from the loops around them. Where a tile's elements are the other
  /// factor, the loops keep a copy with the tests, for blocks in which one of these is not finite; the answer then ends
  /// in a name that tells, and stands behind the barrier after the copies. `tid`: the number of a thread in its block.
  /// NotApplicable where there is no such test.
  llvm::Expected<std::vector<StmtRef>> drop(Kernel &kernel, const std::vector<Tile> &tiles, const ExprRef &tid,
                                            int64_t threads, std::set<std::string> &taken) const;

private:
  struct Test {
    Stmt *branch = nullptr, *outermost = nullptr; ///< the branch, and the outermost loop around it there, or itself
    std::string tile;                             ///< the tile's name
    std::vector<ExprRef> needless;                ///< conjuncts of the branch's condition
  };
  std::vector<Test> tests;
  std::vector<StmtRef> owners; ///< of the tests' statements, which may leave the kernel meanwhile
};

} // namespace optiml

#endif
