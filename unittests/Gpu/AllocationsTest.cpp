//===- AllocationsTest.cpp - device memory and what launches reach --------===//
#include "Allocations.h"
#include "Reach.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace optiml::gpu;

namespace optiml::gpu {
static void PrintTo(const MemoryRange &r, std::ostream *out) {
  *out << std::hex << r.begin << "+" << r.bytes << " variable " << std::dec << r.variable;
}
} // namespace optiml::gpu

using Ranges = std::vector<MemoryRange>;

TEST(Allocations, ComeAndGo) {
  Allocations a;
  MemoryRange r;
  a.add(0x1000, 0x100);
  a.add(0x2000, 0x100);
  a.add(0, 5);
  EXPECT_TRUE(a.find(0x10ff, r));
  EXPECT_EQ(r, (MemoryRange{0x1000, 0x100}));
  EXPECT_FALSE(a.find(0x1100, r));
  EXPECT_FALSE(a.find(0xfff, r));
  a.remove(0x1010); // not where one starts
  EXPECT_TRUE(a.find(0x1000, r));
  a.remove(0x1000);
  EXPECT_FALSE(a.find(0x1000, r));
  a.add(0x2080, 0x100); // the old one must have been freed unseen
  EXPECT_EQ(a.all(), (Ranges{{0x2080, 0x100}}));
}

TEST(Allocations, GoWithTheirContext) {
  Allocations a;
  int one = 0, two = 0;
  a.add(0x1000, 1, &one);
  a.add(0x2000, 1, &two);
  a.add(0x3000, 1);
  a.removeOwned(&one);
  a.removeOwned(nullptr);
  EXPECT_EQ(a.all(), (Ranges{{0x2000, 1}, {0x3000, 1}}));
}

TEST(Allocations, MappingsThatTouchAreOne) {
  Allocations a;
  MemoryRange r;
  a.map(0x1000, 0x1000);
  a.map(0x2000, 0x1000);
  a.map(0x3000, 0x1000);
  a.add(0x4000, 0x1000); // no mapping
  EXPECT_TRUE(a.find(0x2800, r));
  EXPECT_EQ(r, (MemoryRange{0x1000, 0x3000}));
  EXPECT_EQ(a.all(), (Ranges{{0x1000, 0x3000}, {0x4000, 0x1000}}));
  a.unmap(0x1800, 0x1000);
  EXPECT_EQ(a.all(), (Ranges{{0x1000, 0x800}, {0x2800, 0x1800}, {0x4000, 0x1000}}));
  a.unmap(0, 0x10000);
  EXPECT_EQ(a.all(), (Ranges{{0x4000, 0x1000}}));
}

TEST(RangeIndex, JoinsOverlapsAndPrefersVariables) {
  RangeIndex index({{0x3000, 0x100}, {0x1000, 0x100}, {0x1080, 0x100}, {0x5000, 0x1000}, {0x5100, 0x10, 0}});
  EXPECT_EQ(index.all(), (Ranges{{0x1000, 0x180}, {0x3000, 0x100}, {0x5100, 0x10, 0}}));
  EXPECT_EQ(index.find(0x117f), 0);
  EXPECT_EQ(index.find(0x1180), -1);
  EXPECT_EQ(index.find(0x5108), 2);
  EXPECT_EQ(index.find(0x5000), -1);
  EXPECT_EQ(index.find(0), -1);
  EXPECT_EQ(RangeIndex({}).find(0), -1);
}

namespace {

/// Memory in which only chosen words are not zero.
struct Device {
  std::map<uint64_t, uint64_t> words;
  uint64_t bytesRead = 0;
  bool broken = false;
  Reach reach(Ranges ranges) {
    return Reach(RangeIndex(std::move(ranges)), [this](uint64_t address, uint64_t bytes, char *into) {
      memset(into, 0, bytes);
      bytesRead += bytes;
      for (auto it = words.lower_bound(address); it != words.end() && it->first + 8 <= address + bytes; ++it)
        memcpy(into + (it->first - address), &it->second, 8);
      return !broken;
    });
  }
};
constexpr uint64_t everything = uint64_t(1) << 40;

} // namespace

TEST(Reach, FollowsPointers) {
  Device d;
  Ranges ranges{{0x1000, 0x100}, {0x2000, 0x100}, {0x3000, 0x100}, {0x4000, 0x100}};
  d.words = {{0x1010, 0x2020}, {0x2000, 0x3ff0}, {0x2008, 0x30ff}, {0x3000, 0x1000}};
  Reach r = d.reach(ranges);
  r.addPointer(0x1000);
  r.addPointer(0);
  EXPECT_TRUE(r.follow(everything));
  EXPECT_EQ(r.windows(), (Ranges{{0x1000, 0x100}, {0x2000, 0x100}, {0x3000, 0x100}})) << "not the fourth";
  EXPECT_EQ(r.bytes(), 0x300u);
  Reach end = d.reach(ranges);
  end.addPointer(0x3100);
  EXPECT_TRUE(end.follow(0));
  EXPECT_EQ(end.windows(), (Ranges{{0x3000, 0x100}})) << "one past the end";
  d.broken = true;
  Reach broken = d.reach(ranges);
  broken.addPointer(0x1000);
  EXPECT_FALSE(broken.follow(everything));
}

TEST(Reach, LooksIntoStructs) {
  Device d;
  Reach r = d.reach({{0x1000, 0x100}, {0x2000, 0x100}});
  struct {
    uint32_t n;
    uint32_t pad;
    uint64_t pointer;
  } value{0x1000, 0, 0x2010};
  r.addWords(reinterpret_cast<char *>(&value), sizeof value, 16);
  EXPECT_EQ(r.windows(), (Ranges{{0x1000, 0x100}, {0x2000, 0x100}})) << "0x1000 looks like a pointer";
  Reach shifted = d.reach({{0x1000, 0x100}, {0x2000, 0x100}});
  shifted.addWords(reinterpret_cast<char *>(&value), sizeof value, 12);
  EXPECT_TRUE(shifted.windows().empty()) << "no aligned word";
}

TEST(Reach, TakesAWindowOfALargeRange) {
  Device d;
  uint64_t base = uint64_t(1) << 32, size = 2 * largeRange;
  Reach r = d.reach({{0x1000, 0x100}, {base, size}});
  r.addPointer(base + size - 4000);
  r.addPointer(base + 5000);
  r.addPointer(base + 90000);
  d.words = {{0x1000, base + 1025}};
  EXPECT_TRUE(r.follow(everything));
  EXPECT_EQ(r.windows(), (Ranges{{base + 4608, size - 4608}}));
  EXPECT_LE(d.bytesRead, 2 * probeBytes) << "no pointers at its beginning: the rest is not read";
  r.addPointer(0x1000);
  EXPECT_TRUE(r.follow(everything));
  EXPECT_EQ(r.windows(), (Ranges{{0x1000, 0x100}, {base + 1024, size - 1024}})) << "a pointer found later";
  EXPECT_EQ(r.bytes(), 0x100 + size - 1024);
}

TEST(Reach, ScansOnAfterTheFirstPointer) {
  Device d;
  uint64_t base = uint64_t(1) << 32, size = 20 * probeBytes;
  d.words = {{base + 8, 0x1000}, {base + 10 * probeBytes, 0x2000}};
  Reach r = d.reach({{0x1000, 8}, {0x2000, 8}, {base, size}});
  r.addPointer(base);
  EXPECT_TRUE(r.follow(everything));
  EXPECT_EQ(r.windows().size(), 3u);
  Reach stopped = d.reach({{0x1000, 8}, {0x2000, 8}, {base, size}});
  stopped.addPointer(base);
  d.bytesRead = 0;
  EXPECT_TRUE(stopped.follow(100));
  EXPECT_EQ(d.bytesRead, 0u) << "over the limit already";
  EXPECT_GT(stopped.bytes(), 100u);
}
