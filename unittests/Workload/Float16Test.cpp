//===- Float16Test.cpp - 16-bit floating-point numbers --------------------===//
#include "optiml/Workload/Float16.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace optiml;

TEST(Float16, EveryNumberIsItsOwnNearest) {
  for (Format16 f : {Format16::Half, Format16::Brain})
    for (unsigned bits = 0; bits <= 0xFFFF; ++bits)
      if (isFinite16(uint16_t(bits), f)) {
        ASSERT_EQ(bitsOf16(valueOf16(uint16_t(bits), f), f), bits);
      }
}

TEST(Float16, ValuesAreTheFormats) {
  const Format16 half = Format16::Half, brain = Format16::Brain;
  EXPECT_EQ(valueOf16(0x3C00, half), 1.0f);
  EXPECT_EQ(valueOf16(0xC000, half), -2.0f);
  EXPECT_EQ(valueOf16(0x7BFF, half), 65504.0f);
  EXPECT_EQ(valueOf16(0x0001, half), 0x1p-24f);
  EXPECT_EQ(valueOf16(0x83FF, half), -1023 * 0x1p-24f);
  EXPECT_TRUE(std::isinf(valueOf16(0x7C00, half)));
  EXPECT_TRUE(std::isnan(valueOf16(0x7C01, half)));
  EXPECT_EQ(valueOf16(0x3F80, brain), 1.0f);
  EXPECT_TRUE(std::isinf(valueOf16(0xFF80, brain)));
}

TEST(Float16, RoundsToNearestEven) {
  const Format16 half = Format16::Half, brain = Format16::Brain;
  EXPECT_EQ(bitsOf16(1 + 0x1p-11f, half), 0x3C00);
  EXPECT_EQ(bitsOf16(1 + 0x1p-11f + 0x1p-20f, half), 0x3C01);
  EXPECT_EQ(bitsOf16(1 + 0x3p-11f, half), 0x3C02);
  EXPECT_EQ(bitsOf16(2 - 0x1p-12f, half), 0x4000);
  EXPECT_EQ(bitsOf16(0x1.8p-24f, half), 2);
  EXPECT_EQ(bitsOf16(-0x1p-26f, half), 0x8000);
  EXPECT_EQ(bitsOf16(1e9f, half), 0x7BFF);
  EXPECT_EQ(bitsOf16(1 + 0x1p-8f, brain), 0x3F80);
  EXPECT_EQ(bitsOf16(1 + 0x3p-8f, brain), 0x3F82);
}

TEST(Float16, TwoUnitsInTheLastPlaceAreNear) {
  const Format16 half = Format16::Half;
  EXPECT_TRUE(isNear16(0x3C02, 0x3C00, half, 0));
  EXPECT_FALSE(isNear16(0x3C03, 0x3C00, half, 0));
  EXPECT_TRUE(isNear16(0x3BFE, 0x3C00, half, 0)); // across a power of two
  EXPECT_TRUE(isNear16(0x8001, 0x0001, half, 0)); // across zero
  EXPECT_FALSE(isNear16(0x8002, 0x0001, half, 0));
  EXPECT_TRUE(isNear16(0x8002, 0x0001, half, 0x3p-24));
  EXPECT_FALSE(isNear16(0x7C00, 0x7BFF, half, 1e9));
  EXPECT_FALSE(isNear16(0x7C01, 0x7BFF, half, 1e9));
  EXPECT_TRUE(isNear16(0x7E00, 0x7C01, half, 0));
  EXPECT_FALSE(isNear16(0x3C00, 0x7C01, half, 1e9));
  EXPECT_FALSE(isNear16(0xFC00, 0x7C00, half, 1e9));
}
