//===- OwnSlices.h - each thread's own part of an array ---------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_OWNSLICES_H
#define OPTIML_LIB_TRANSFORMS_STAGING_OWNSLICES_H

#include "TileReads.h"
#include "optiml/Support/Error.h"
#include <set>

namespace optiml {

/// An access to an array of slices.
struct SliceAccess {
  const Access *access;
  ExprRef element; ///< what it accesses, or a part of: the number, or the record
  Poly within;     ///< where in the slice
  bool isWhole() const { return access->place == element; }
};

/// The slices of one array. They are copied by words: its numbers, or what its records are made of.
struct Slices {
  std::string array, name; ///< `name`: in shared memory
  ExprRef root;
  Type element, word;
  int64_t words = 1;  ///< of an element
  int64_t stride = 0; ///< from one thread's slice to the next one's, in elements
  Poly base, rowStride;
  int64_t low = INT64_MAX, high = INT64_MIN; ///< what is accessed of a slice
  bool wideIndex = false, isWritten = false;
  bool isDense = false;   ///< every thread writes all of it
  bool isSet = false;     ///< and before it reads any
  bool needsNext = false; ///< only the next thread's first access shows that all of a slice is part of the array
  std::vector<SliceAccess> accesses;
  bool isOfRecords() const { return element.cls == Type::Class::Record; }
  int64_t length() const { return high - low + 1; }
  int64_t copied() const { return length() * words; }
  /// Words from one slice to the next in shared memory: threads of a warp in banks of their own, as far as the
  /// alignment of records allows.
  int64_t padded() const {
    const int64_t bytes = copied() * word.bytes;
    return isOfRecords() && bytes % 16 == 0 ? copied() + 16 / word.bytes : copied() | 1;
  }
};

/// The slices of arrays, and which threads have them.
struct OwnSlices {
  std::vector<Slices> arrays;
  /// Each is >= 0 where a thread has slices, over its index in the block, those of blocks, and parameters.
  std::vector<Poly> gate;
};

/// NotApplicable, with the reason, where threads access more of one of the arrays than slices of their own, or it is
/// not certain that all of the slices are part of the array.
llvm::Expected<OwnSlices> findOwnSlices(const KernelModel &model, llvm::ArrayRef<llvm::StringRef> arrays);

/// An index apart: what one more along threadIdx.x and threadIdx.y adds, what a block has alike, and the rest.
struct ThreadIndex {
  Poly perThread, perRow, ofBlock, rest;
};
/// Nothing where a thread's index is multiplied by what is no parameter.
std::optional<ThreadIndex> splitByThread(const KernelModel &model, const Poly &index);

/// What just says the same as the guard, each >= 0, over indices of threads and blocks, and parameters; else nothing.
std::optional<std::vector<Poly>> factsOfBlock(const KernelModel &model, const Guard &guard);
/// Whether the facts hold for all threads of a block of fixed shape (and with `next`, of one more along x); null:
/// always.
llvm::Expected<ExprRef> holdsForBlock(const KernelModel &model, const std::vector<Poly> &facts, bool next);

/// The parameter whose elements the access reaches, or parts of them; else what the model calls its array.
std::string arrayOf(const KernelModel &model, const Access &access);

/// Records that the arrays (whether they are written) do not overlap others that the kernel, or what is `within` a
/// loop, accesses, where one of the two is written.
llvm::Error requireStagedApart(KernelState &state, const KernelModel &model, const Stmt *within,
                               const std::map<std::string, bool> &staged);
/// A new name for what is staged of an array.
std::string stagedName(std::set<std::string> &taken, std::string array, llvm::StringRef suffix);

/// The index `along` a row of the thread with number `row` in its block.
ExprRef indexInRow(const KernelModel &model, const Poly &along, const Poly &perThread, const Poly &perRow,
                   const std::string &row);
/// A loop in which the threads of a block, of which `tid` is one, make `move` for each of the columns of all rows, one
/// row a thread, in turns: neighbours take neighbouring columns.
StmtRef takeTurns(const KernelModel &model, std::set<std::string> &taken, const std::string &tid, int64_t columns,
                  int unroll, llvm::function_ref<StmtRef(const std::string &row, const std::string &column)> move);

} // namespace optiml

#endif
