//===- TileReaders.h - elements that one thread reads anyway ----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_TILEREADERS_H
#define OPTIML_LIB_TRANSFORMS_TILEREADERS_H

#include "SharedTile.h"

namespace optiml {

/// Filters are read under conditions on the pixel: "is this row inside of the image?". Where an element's place does
/// not depend on an axis of the launch, and one of its first threads makes the read in every iteration of the loops
/// that decide the place, all elements may be read, whatever the conditions say to the threads of this block. Then
/// drops what `facts`, those of one read (each >= 0), say of such axes. `places`: what decides which element is read.
/// What has to be known of the launch becomes a condition of `state`. Facts that say nothing of the loops stay.
void dropFactsOfReaders(KernelState &state, const KernelModel &model, const std::vector<Poly> &places,
                        const std::vector<Runner> &runners, std::vector<Poly> &facts);

} // namespace optiml

#endif
