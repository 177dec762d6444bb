//===- ArenaTest.cpp - address ranges and what lies between them ----------===//
#include "Arena.h"
#include <gtest/gtest.h>

using namespace optiml::gpu;

static std::vector<std::pair<uint64_t, uint64_t>> pairs(const std::vector<AddressRange> &ranges) {
  std::vector<std::pair<uint64_t, uint64_t>> result;
  for (const AddressRange &r : ranges)
    result.push_back({r.begin, r.end()});
  return result;
}
using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

TEST(Arena, RangesAreRoundedOutwardsAndJoined) {
  EXPECT_EQ(pairs(joinRanges({{5000, 10}, {100, 50}, {4000, 96}}, 4096)), (Pairs{{0, 8192}}));
  EXPECT_EQ(pairs(joinRanges({{3 * 4096, 1}, {0, 1}}, 4096)), (Pairs{{0, 4096}, {3 * 4096, 4 * 4096}}));
  EXPECT_EQ(pairs(joinRanges({{10, 20}, {30, 5}, {40, 5}}, 1)), (Pairs{{10, 35}, {40, 45}}));
  EXPECT_TRUE(joinRanges({}, 4096).empty());
}

TEST(Arena, GapsLieBesideBuffersAndReachOnlySoFar) {
  AddressRange arena{0, 1000};
  EXPECT_EQ(pairs(gapsOf(arena, {{100, 100}, {300, 100}}, 1000)), (Pairs{{0, 100}, {200, 300}, {400, 1000}}));
  EXPECT_EQ(pairs(gapsOf(arena, {{400, 200}}, 50)), (Pairs{{350, 400}, {600, 650}}));
  EXPECT_EQ(pairs(gapsOf(arena, {{0, 100}, {100, 900}}, 50)), (Pairs{}));
  EXPECT_EQ(pairs(gapsOf(arena, {{2000, 100}}, 50)), (Pairs{})) << "a buffer of another arena";
}

TEST(Arena, GapsNeverCoverAByteOfABuffer) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    uint64_t state = seed * 6364136223846793005u + 1;
    auto random = [&](uint64_t n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 33) % n;
    };
    AddressRange arena{1000, 5000};
    std::vector<AddressRange> used;
    for (uint64_t at = 1000 + random(300); at < 5800; at += random(700))
      used.push_back({at, 1 + random(150)}), at += used.back().bytes;
    for (const AddressRange &gap : gapsOf(arena, used, 1 + random(400))) {
      EXPECT_GE(gap.begin, arena.begin);
      EXPECT_LE(gap.end(), arena.end());
      for (const AddressRange &u : used)
        EXPECT_TRUE(gap.end() <= u.begin || u.end() <= gap.begin) << "seed " << seed;
    }
  }
}
