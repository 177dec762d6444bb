//===- BlockSample.h - some blocks of a launch ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_BLOCKSAMPLE_H
#define OPTIML_LIB_EVALUATE_VERIFY_BLOCKSAMPLE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace optiml {

inline uint64_t blocksOf(const std::array<uint32_t, 3> &grid) { return uint64_t(grid[0]) * grid[1] * grid[2]; }

/// Linear ids of `count` of them (at least 2), spread evenly, the first and the last among them; empty, which means
/// all, when there are no more.
inline std::vector<uint32_t> spreadBlocks(uint64_t blocks, uint64_t count) {
  std::vector<uint32_t> sample;
  if (blocks > count)
    for (uint64_t i = 0; i < count; ++i)
      sample.push_back(uint32_t(i * (blocks - 1) / (count - 1)));
  return sample;
}

constexpr uint64_t fewBlocks = 8, manyBlocks = 64;

/// Those of a long launch that are looked at closely: enough to see every kind of block, few enough to take a fraction
/// of the launch's time where each takes some 20 times as long.
/// In pairs of neighbours, along x and along the next axis in turn, for these are the ones that share elements.
inline std::vector<uint32_t> closeBlocks(const std::array<uint32_t, 3> &grid, uint64_t atMost = manyBlocks) {
  uint64_t blocks = blocksOf(grid), most = std::clamp<uint64_t>(blocks / 32, fewBlocks, atMost);
  std::vector<uint32_t> sample = spreadBlocks(blocks, most);
  for (size_t i = 1; i < sample.size(); i += 2) {
    uint64_t neighbour = uint64_t(sample[i - 1]) + (i % 4 == 1 ? 1 : grid[0]);
    if (neighbour < blocks && i + 1 < sample.size())
      sample[i] = uint32_t(neighbour);
  }
  std::sort(sample.begin(), sample.end());
  sample.erase(std::unique(sample.begin(), sample.end()), sample.end());
  return sample;
}

} // namespace optiml

#endif
