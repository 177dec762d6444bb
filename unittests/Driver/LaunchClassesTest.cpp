//===- LaunchClassesTest.cpp ----------------------------------------------===//
#include "LaunchClasses.h"
#include <gtest/gtest.h>

using namespace optiml;

TEST(LaunchClasses, FarApartAndWorthTheirOwn) {
  struct Case {
    std::map<uint64_t, double> costs;
    std::vector<ThreadRange> classes;
  } cases[] = {
      {{}, {{}}},
      {{{1024, 1}}, {{}}},
      {{{1024, 1}, {4096, 1}, {32000, 1}}, {{}}},
      {{{1000, 1}, {1000000, 1}}, {{0, 31622}, {31623, ThreadRange::unlimited}}},
      {{{1000, 1}, {1000000, 100}}, {{}}},
      {{{1000, 100}, {1000000, 1}}, {{}}},
      {{{100, 1}, {10000, 0.001}, {1000000, 1}}, {{0, 1000}, {1001, ThreadRange::unlimited}}},
      {{{100, 1}, {10000, 1}, {1000000, 1}}, {{0, 1000}, {1001, 100000}, {100001, ThreadRange::unlimited}}},
  };
  for (const Case &c : cases)
    EXPECT_EQ(launchClasses(c.costs), c.classes);
}

TEST(LaunchClasses, SmallLaunchesCostWhatTheGpuTakes) {
  EXPECT_EQ(launchCost(10, 32), launchCost(10, 1024));
  EXPECT_EQ(launchCost(1, 1 << 20), 1 << 20);
}

TEST(ThreadRange, Text) {
  for (const char *text : {"0-", "1-1", "1024-65535", "7-"}) {
    auto range = ThreadRange::parse(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(range->str(), text);
  }
  for (const char *text : {"", "-", "5", "-5", "a-b", "9-8", "1-2-3", "1 - 2", "99999999999999999999-"})
    EXPECT_FALSE(ThreadRange::parse(text)) << text;
}
