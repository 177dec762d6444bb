//===- TileReads.h - reads that a tile in shared memory serves --*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_TILEREADS_H
#define OPTIML_LIB_TRANSFORMS_STAGING_TILEREADS_H

#include "SharedTile.h"

namespace optiml {

/// A condition, and whether it holds.
using Guard = std::pair<ExprRef, bool>;
/// Conditions with what they are made of apart: a && b holds where a and b do.
std::vector<Guard> conjunctsOf(const std::vector<Guard> &guards);
/// Everything `condition`, one of those that conjunctsOf gives, says is among the facts that addFacts gives beside
/// `facts`, which it joins.
bool saysJust(const KernelModel &model, const ExprRef &condition, bool taken, std::vector<Poly> &facts);

/// The condition is that of a loop around the access.
bool isLoopHeader(const Access &access, const ExprRef &condition);

/// A read whose index is split into what the threads of a block and the loops in them make it run over, and the rest.
struct StagedRead {
  const Access *access;
  std::vector<std::pair<Poly, Poly>> dims; ///< stride, what varies along it
  Poly uniform;                            ///< the rest of the index
  std::vector<Runner> runners;
  std::vector<BoundaryCondition> rules;
};

/// Reads whose places lie at constant distances: they share a tile.
struct ReadFamily {
  std::vector<StagedRead> reads;
  std::vector<std::vector<int64_t>> steps; ///< of each read along each stride, from the first one
};

/// Every read of the array (in the strip's loop). NotApplicable where one cannot be staged. `apart`: strides that just
/// follow one another are dimensions of their own.
llvm::Expected<std::vector<StagedRead>> readsOf(const KernelModel &model, const std::string &array, const Strip *strip,
                                                bool apart);
std::vector<Poly> stridesOf(const std::vector<StagedRead> &reads);
/// Reads at places whose distance is not constant (rows i and j of one matrix) are families of their own.
std::vector<ReadFamily> familiesOf(std::vector<StagedRead> reads, const std::vector<Poly> &strides);
bool isOnePlace(const ReadFamily &family);
/// What varies of each read of a family along the strides that the family has, which `strides` shrinks to.
std::vector<std::vector<Poly>> coordinatesOf(const ReadFamily &family, std::vector<Poly> &strides);

/// Filters are read under conditions on the pixel: "is this row inside of the image?". Where an element's place does
/// not depend on an axis of the launch, and one of its first threads makes the read in every iteration of the loops
/// that decide the place, all elements may be read, whatever the conditions say to the threads of this block. Then
/// drops what `facts`, those of one read (each >= 0), say of such axes. `places`: what decides which element is read.
/// What has to be known of the launch becomes a condition of `state`. Facts that say nothing of the loops stay.
void dropFactsOfReaders(KernelState &state, const KernelModel &model, const std::vector<Poly> &places,
                        const std::vector<Runner> &runners, std::vector<Poly> &facts);

} // namespace optiml

#endif
