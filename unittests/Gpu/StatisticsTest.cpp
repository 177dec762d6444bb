//===- StatisticsTest.cpp - medians and their intervals -------------------===//
#include "optiml/Gpu/Statistics.h"
#include <gtest/gtest.h>
#include <random>

using namespace optiml::gpu;

TEST(Statistics, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({5, 1, 100}), 5);
}

TEST(Statistics, FewValuesHaveTheirWholeRange) {
  Interval i = medianInterval({3, 1, 2});
  EXPECT_EQ(i.low, 1);
  EXPECT_EQ(i.high, 3);
}

// From the table of the sign test: for n = 10 the second and ninth value, for n = 20 the sixth and fifteenth.
TEST(Statistics, OrderStatisticsOfTheInterval) {
  std::vector<double> ten, twenty;
  for (int i = 1; i <= 20; ++i) {
    if (i <= 10)
      ten.push_back(i);
    twenty.push_back(i);
  }
  EXPECT_EQ(medianInterval(ten).low, 2);
  EXPECT_EQ(medianInterval(ten).high, 9);
  EXPECT_EQ(medianInterval(twenty).low, 6);
  EXPECT_EQ(medianInterval(twenty).high, 15);
}

TEST(Statistics, TheIntervalCoversTheTrueMedian) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> noise(0, 0.3); // median 1
  unsigned covered = 0, trials = 2000;
  for (unsigned t = 0; t < trials; ++t) {
    std::vector<double> values;
    for (int i = 0; i < 21; ++i)
      values.push_back(noise(random));
    Interval i = medianInterval(values);
    covered += i.low <= 1 && 1 <= i.high;
  }
  EXPECT_GE(covered, trials * 0.95);
}

TEST(Statistics, Spread) {
  EXPECT_EQ(relativeSpread({1}), 0);
  EXPECT_NEAR(relativeSpread({9, 10, 10, 10, 11}), 0, 1e-12);
  EXPECT_GT(relativeSpread({5, 8, 10, 12, 15}), 0.1);
}
