//===- ManySums.h - many sums of a block at once ----------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_MANYSUMS_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_MANYSUMS_H

#include "Reduction.h"

namespace optiml {

/// What a thread has of one sum, and the atomic update that gets what the block has of it.
struct BlockSum {
  Reduction reduction;
  ExprRef update; ///< one of them
  ExprRef address;
  std::function<ExprRef(const ExprRef &)> whole; ///< the update's value, of the block's sum
};

/// As many as are worth it to be combined at once.
constexpr size_t manySums = 8;

/// Combines sums of one type and adds each to its place. In a step of a warp every lane gives half of its sums away and
/// takes the other half's share from its partner, so that 32 sums take 31 shuffles and not 160, and a block one
/// barrier.
std::vector<StmtRef> combineMany(const ThreadGroup &group, const std::vector<BlockSum> &sums,
                                 std::set<std::string> &taken);

} // namespace optiml

#endif
