//===- VerifySample.h - some blocks of a launch -----------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFYSAMPLE_H
#define OPTIML_LIB_EVALUATE_VERIFYSAMPLE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace optiml {

inline uint64_t blocksOf(const std::array<uint32_t, 3> &grid) { return uint64_t(grid[0]) * grid[1] * grid[2]; }

/// Linear ids of `count` of them (at least 2), spread evenly, the first and the last among them; empty, which means all,
/// when there are no more.
inline std::vector<uint32_t> spreadBlocks(uint64_t blocks, uint64_t count) {
  std::vector<uint32_t> sample;
  if (blocks > count)
    for (uint64_t i = 0; i < count; ++i)
      sample.push_back(uint32_t(i * (blocks - 1) / (count - 1)));
  return sample;
}

/// Those of a long launch that are looked at closely: enough to see every kind of block, few enough to take a fraction
/// of the launch's time where each takes some 20 times as long.
inline std::vector<uint32_t> closeBlocks(const std::array<uint32_t, 3> &grid) {
  uint64_t blocks = blocksOf(grid);
  return spreadBlocks(blocks, std::clamp<uint64_t>(blocks / 32, 8, 64));
}

} // namespace optiml

#endif
