//===- Places.h - what comparisons on the GPU leave -------------*- C++ -*-===//
#ifndef OPTIML_LIB_GPU_DEVICE_PLACES_H
#define OPTIML_LIB_GPU_DEVICE_PLACES_H

namespace optiml::gpu {

/// The first place in memory where something differs; ~0: nowhere.
using Place = unsigned long long;
/// So many places; as many counters of strays follow, ~0 in each for none.
constexpr unsigned places = 256;

/// Rounding errors of millions of cells have tails that a limit, which a typical error sets, does not reach. Of a
/// buffer's cells, one in so many may be further away than the limit, up to so many times.
constexpr unsigned cellsForStray = 1024;
constexpr double strayDistance = 16;

} // namespace optiml::gpu

#endif
