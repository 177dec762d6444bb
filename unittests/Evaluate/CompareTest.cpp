//===- CompareTest.cpp - what counts as the same result -------------------===//
#include "../../lib/Evaluate/Verify/BufferCompare.h"
#include <cfloat>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace optiml;

namespace {

template <typename T> std::string bytesOf(const std::vector<T> &v) {
  return std::string(reinterpret_cast<const char *>(v.data()), v.size() * sizeof(T));
}

/// A buffer of floats with exact twins and the given magnitudes.
BufferReference floats(const std::vector<float> &own, const std::vector<double> &exact,
                       const std::vector<double> &magnitude) {
  BufferReference r;
  r.name = "argument 0 (float*)";
  r.element = {ElementKind::Float, 4, false};
  r.bytes = bytesOf(own);
  std::string cells;
  for (size_t i = 0; i < own.size(); ++i) {
    ShadowRecord c{4 * i, 4, 0, exact[i], magnitude[i]};
    cells.append(reinterpret_cast<const char *>(&c), sizeof c);
  }
  r.setCells(cells);
  return r;
}

bool same(const BufferReference &r, const std::vector<float> &v, const FloatRule &rule = {}) {
  return !compareBuffer(r, bytesOf(v), rule);
}

} // namespace

TEST(Compare, BoundFollowsTheMagnitude) {
  // A sum that cancels: its value is 1, its terms add up to 1000.
  BufferReference r = floats({1}, {1}, {1000});
  EXPECT_TRUE(same(r, {1}));
  EXPECT_TRUE(same(r, {1 + 0.0009f}));
  EXPECT_FALSE(same(r, {1 + 0.0011f}));
  BufferReference small = floats({1}, {1}, {1});
  EXPECT_FALSE(same(small, {1 + 0.0009f}));
  EXPECT_TRUE(same(small, {1 + 8 * FLT_EPSILON}));
  EXPECT_FALSE(same(small, {1 + 9 * FLT_EPSILON}));
}

TEST(Compare, OneCellsOwnErrorWidensItsBoundAlone) {
  BufferReference r = floats({1, 2, 3, 4}, {1 + 1e-5, 2, 3, 4}, {1, 2, 3, 4});
  EXPECT_EQ(r.error4, 0);
  EXPECT_TRUE(same(r, {1 + 4.5e-5f, 2, 3, 4}));
  EXPECT_FALSE(same(r, {1 + 6e-5f, 2, 3, 4}));
  EXPECT_FALSE(same(r, {1, 2 + 7e-6f, 3, 4}));
}

TEST(Compare, TheTypicalErrorWidensAllBounds) {
  BufferReference r = floats({1, 1, 1}, {1 + 1e-6, 1 - 1e-6, 1}, {1, 1, 1});
  EXPECT_NEAR(r.error4, 1e-6, 1e-9);
  EXPECT_TRUE(same(r, {1, 1, 1 + 1.5e-5f}));
  EXPECT_FALSE(same(r, {1, 1, 1 + 1.8e-5f}));
}

TEST(Compare, OnMadeUpInputsWhatIsUndefinedIsNotCompared) {
  BufferReference r = floats({NAN, INFINITY, 5, 1}, {NAN, INFINITY, NAN, 1}, {NAN, INFINITY, NAN, 1});
  EXPECT_FALSE(same(r, {0, INFINITY, 5, 1}));
  r.synthetic = true;
  EXPECT_TRUE(same(r, {0, -INFINITY, 7, 1}));
  EXPECT_FALSE(same(r, {0, 2, 5, 1}));
  EXPECT_FALSE(same(r, {0, INFINITY, 5, NAN}));
}

TEST(Compare, OfExtremeMagnitudesOnlyWhatIsLostCounts) {
  BufferReference r = floats({8e-25f, 3e30f}, {8e-25, 3e30}, {8e-25, 3e30});
  EXPECT_FALSE(same(r, {6e-25f, 3e30f}));
  r.synthetic = r.extreme = true;
  EXPECT_TRUE(same(r, {6e-25f, 3e30f})); // a product on the way was denormal
  EXPECT_TRUE(same(r, {0, 3e30f}));      // or less
  EXPECT_FALSE(same(r, {8e-25f, INFINITY}));
  EXPECT_FALSE(same(r, {NAN, 3e30f}));
  EXPECT_FALSE(same(r, {-8e-25f, 3e30f}));
  EXPECT_FALSE(same(r, {8e-25f, 7e30f}));
}

TEST(Compare, WhatRoundingOtherwiseTakesFarAwayIsNotCompared) {
  BufferReference r = floats({0, 1, 2, INFINITY}, {0, 1, 2, INFINITY}, {1, 1, 1e3, INFINITY});
  const std::string rounded = bytesOf<float>({INFINITY, 1.002f, 2.5f, 3});
  r.markJumps(rounded);
  EXPECT_FALSE(same(r, {7, 1, 2, INFINITY})) << "on the program's own input";
  r.synthetic = true;
  r.markJumps(rounded);
  EXPECT_TRUE(same(r, {7, NAN, 2, 5}));
  EXPECT_FALSE(same(r, {0, 1, 2.5f, INFINITY}))
      << "its terms are large, and it changed by less than a thousandth of them";
}

// A rounding error in place of an exact zero, times infinity.
TEST(Compare, WhatIsTheSameInDoublePrecisionMayBeInfiniteOnMaskedInputs) {
  BufferReference r = floats({0, 1}, {0, 1}, {1, 1});
  r.synthetic = true;
  r.sameTwins = {0};
  EXPECT_TRUE(same(r, {NAN, 1}));
  EXPECT_FALSE(same(r, {INFINITY, 1}));
  r.masked = true;
  EXPECT_TRUE(same(r, {INFINITY, 1}));
  EXPECT_FALSE(same(r, {0.5f, 1}));
  EXPECT_FALSE(same(r, {0, INFINITY}));
}

TEST(Compare, CellsThatWereNotRecomputedCountWithTheMagnitudeOfOthers) {
  BufferReference r;
  r.element = {ElementKind::Float, 4, false};
  r.bytes = bytesOf<float>({1, 2, 3, NAN});
  ShadowRecord c{0, 4, 0, 1, 100};
  std::string cells(reinterpret_cast<const char *>(&c), sizeof c);
  ASSERT_TRUE(r.setSampledCells(cells, bytesOf<float>({0, 0, 0, 0}), bytesOf<float>({1, 0, 0, 0})));
  const float within = 700 * FLT_EPSILON, beyond = 900 * FLT_EPSILON;
  EXPECT_TRUE(same(r, {1 + within, 2 + within, 3 - within, NAN}));
  EXPECT_FALSE(same(r, {1 + beyond, 2, 3, NAN}));
  EXPECT_TRUE(same(r, {1, 2 + beyond, 3, NAN}));
  EXPECT_FALSE(same(r, {1, 2 + 2 * beyond, 3, NAN}));
  EXPECT_FALSE(same(r, {1, 2, NAN, NAN}));
  EXPECT_FALSE(same(r, {1, 2, 3, 3}));
  EXPECT_FALSE(same(r, {1, 2 + within, 3, NAN}, FloatMode::Strict));
}

TEST(Compare, NumbersOf16BitsMayDifferByTwoUnitsInTheLastPlace) {
  BufferReference r;
  r.name = "argument 0 (__half*)";
  r.element = {ElementKind::Half, 2, false};
  auto halves = [](std::vector<float> v) {
    std::vector<uint16_t> bits;
    for (float x : v)
      bits.push_back(bitsOf16(x, Format16::Half));
    return bytesOf(bits);
  };
  r.bytes = halves({1, 512, 0.0001f});
  EXPECT_FALSE(compareBuffer(r, halves({1 + 0x1p-9f, 512, 0.0001f}), {}));
  std::optional<Difference> far = compareBuffer(r, halves({1, 512 + 1.5f, 0.0001f}), {});
  ASSERT_TRUE(far);
  EXPECT_EQ(far->index, 1u);
  EXPECT_EQ(far->expected, "512");
  EXPECT_EQ(far->actual, "513.5");
  EXPECT_FALSE(compareBuffer(r, halves({1, 512, 0.002f}), {})) << "2^-18 of the largest";
  EXPECT_TRUE(compareBuffer(r, halves({1, 512, 0.003f}), {}));
  EXPECT_TRUE(compareBuffer(r, halves({1 + 0x1p-10f, 512, 0.0001f}), FloatMode::Strict));
  EXPECT_FALSE(compareBuffer(r, halves({1.1f, 512, 0.0001f}), FloatMode::Fast)) << "0.05 % of the largest";
  r.element = {ElementKind::Integer, 2, true};
  EXPECT_TRUE(compareBuffer(r, halves({1 + 0x1p-10f, 512, 0.0001f}), {}));
}

// What cancels has few digits right, also where the result is rounded to 16 bits.
TEST(Compare, NumbersOf16BitsHaveTheToleranceOfWhatWasRounded) {
  auto bits = [](float v) { return bytesOf<uint16_t>({bitsOf16(v, Format16::Half)}); };
  BufferReference r;
  r.element = {ElementKind::Half, 2, false};
  r.bytes = bits(0.80f);
  ShadowRecord c{0, 2, 0, 0.81, 1e5};
  r.setCells({reinterpret_cast<const char *>(&c), sizeof c});
  EXPECT_FALSE(compareBuffer(r, bits(0.87f), {})) << "8 roundings of a float of that magnitude";
  EXPECT_TRUE(compareBuffer(r, bits(1.0f), {}));
  EXPECT_TRUE(compareBuffer(r, bits(NAN), {}));
  c = {0, 2, 0, 0.81, 0.81};
  r.setCells({reinterpret_cast<const char *>(&c), sizeof c});
  EXPECT_TRUE(compareBuffer(r, bits(0.84f), {}));
  r.synthetic = true;
  EXPECT_TRUE(compareBuffer(r, bits(0.84f), {})) << "it has a digit right";
  r.element = {ElementKind::Integer, 2, true};
  EXPECT_TRUE(compareBuffer(r, bits(0.801f), {})) << "of the format nothing is known";
}

TEST(Compare, SumsOfAtomicAdditionsMayDifferBySqrtOfTheirNumber) {
  BufferReference r;
  r.element = {ElementKind::Float, 4, false};
  r.bytes = bytesOf<float>({1, 1});
  ShadowRecord c[] = {{0, 4, 10000, 1, 1}, {4, 4, 9, 1, 1}};
  r.setCells({reinterpret_cast<const char *>(c), sizeof c});
  EXPECT_TRUE(same(r, {1 + 99 * FLT_EPSILON, 1 + 7 * FLT_EPSILON}));
  EXPECT_FALSE(same(r, {1 + 101 * FLT_EPSILON, 1}));
  EXPECT_FALSE(same(r, {1, 1 + 9 * FLT_EPSILON}));
}

TEST(Compare, ASampleIsNoReferenceWhereOtherBlocksTakePart) {
  BufferReference r;
  r.element = {ElementKind::Float, 4, false};
  r.bytes = bytesOf<float>({1, 2});
  ShadowRecord c{0, 4, 0, 0.5, 0.5};
  std::string cells(reinterpret_cast<const char *>(&c), sizeof c);
  EXPECT_FALSE(r.setSampledCells(cells, bytesOf<float>({0, 0}), bytesOf<float>({0.5, 0})));
  EXPECT_FALSE(same(r, {1 + FLT_EPSILON, 2}));
}

TEST(Compare, InASampledBufferOfOtherThingsTheRestMatchesBitForBit) {
  BufferReference r;
  r.element = {ElementKind::Float, 4, false};
  r.bytes = bytesOf<float>({1, 2, 3});
  ShadowRecord c{0, 4, 0, 1, 100};
  std::string cells(reinterpret_cast<const char *>(&c), sizeof c);
  // The sampled blocks also wrote the third word, which is no number, or not always.
  ASSERT_TRUE(r.setSampledCells(cells, bytesOf<float>({0, 0, 0}), bytesOf<float>({1, 0, 3})));
  EXPECT_TRUE(same(r, {1 + FLT_EPSILON, 2, 3}));
  EXPECT_FALSE(same(r, {1, 2 + 2 * FLT_EPSILON, 3}));
}

TEST(Compare, SampledIntegersMatchBitForBit) {
  BufferReference r;
  r.element = {ElementKind::Integer, 4, false};
  r.bytes = bytesOf<int>({1, 2});
  ASSERT_TRUE(r.setSampledCells("", bytesOf<int>({0, 0}), bytesOf<int>({1, 0})));
  EXPECT_FALSE(compareBuffer(r, bytesOf<int>({1, 2}), FloatMode::Reassoc));
  EXPECT_TRUE(compareBuffer(r, bytesOf<int>({1, 3}), FloatMode::Reassoc));
}

TEST(Compare, ADiscontinuityDoesNotWidenTheBound) {
  BufferReference r = floats({1, 2}, {3, 2}, {1, 2}); // the double-precision run took another branch
  EXPECT_EQ(r.error4, 0);
  EXPECT_TRUE(same(r, {1, 2}));
  EXPECT_TRUE(same(r, {3, 2})) << "either side is right";
  EXPECT_FALSE(same(r, {2, 2}));
}

TEST(Compare, NaNAndInfinityMustMatch) {
  BufferReference r = floats({NAN, INFINITY, 1}, {NAN, INFINITY, 1}, {NAN, INFINITY, 1});
  EXPECT_TRUE(same(r, {-NAN, INFINITY, 1}));
  EXPECT_FALSE(same(r, {1, INFINITY, 1}));
  EXPECT_FALSE(same(r, {NAN, -INFINITY, 1}));
  EXPECT_FALSE(same(r, {NAN, INFINITY, NAN}));
  EXPECT_FALSE(same(r, {NAN, INFINITY, INFINITY}));
}

TEST(Compare, FastIsHeldToItsBudget) {
  BufferReference r = floats({1, 100}, {1, 100}, {1, 100});
  FloatRule rule(FloatMode::Fast);
  EXPECT_TRUE(same(r, {1 + 4e-4f, 100}, rule));
  EXPECT_FALSE(same(r, {1 + 6e-4f, 100}, rule));
  rule.error = 1e-5;
  EXPECT_FALSE(same(r, {1 + 4e-4f, 100}, rule));
  double error = 0;
  EXPECT_FALSE(compareBuffer(r, bytesOf<float>({1 + 2e-6f, 100.0008f}), rule, &error));
  EXPECT_NEAR(error, 8e-6, 1e-7);
}

TEST(Compare, StrictMeansBitForBit) {
  BufferReference r = floats({1}, {1}, {1});
  EXPECT_TRUE(same(r, {1}, FloatMode::Strict));
  EXPECT_FALSE(same(r, {1 + FLT_EPSILON}, FloatMode::Strict));
}

TEST(Compare, WhatIsNoFloatMustMatchExactly) {
  BufferReference r;
  r.name = "argument 1 (int*)";
  r.element = {ElementKind::Integer, 4, false};
  r.bytes = bytesOf<int>({1, -2, 3});
  EXPECT_FALSE(compareBuffer(r, bytesOf<int>({1, -2, 3}), FloatMode::Fast));
  auto d = compareBuffer(r, bytesOf<int>({1, -3, 3}), FloatMode::Fast);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->index, 1u);
  EXPECT_EQ(d->expected, "-2");
  EXPECT_EQ(d->actual, "-3");
}

TEST(Compare, OrderDependentIntegersAreLeftOut) {
  BufferReference r;
  r.element = {ElementKind::Integer, 4, false};
  r.bytes = bytesOf<int>({1, 2, 3});
  r.markUnstable(bytesOf<int>({1, 5, 3}));
  EXPECT_FALSE(compareBuffer(r, bytesOf<int>({1, 9, 3}), FloatMode::Reassoc));
  EXPECT_TRUE(compareBuffer(r, bytesOf<int>({1, 9, 4}), FloatMode::Reassoc));
}

TEST(Compare, WhatRoundingDecidesIsLeftOut) {
  BufferReference r = floats({1, 100}, {1, 100}, {1, 1e6});
  r.markIfRoundingDecides(bytesOf<float>({1.0001f, 101}));
  EXPECT_FALSE(same(r, {2, 100}));
  r.markIfRoundingDecides(bytesOf<float>({1.01f, 100}));
  EXPECT_TRUE(same(r, {2, 100}));
  BufferReference nearest;
  nearest.element = {ElementKind::Integer, 4, false};
  nearest.bytes = bytesOf<int>({1, 2, 3});
  nearest.markIfRoundingDecides(bytesOf<int>({1, 2, 3}));
  EXPECT_TRUE(compareBuffer(nearest, bytesOf<int>({1, 2, 4}), FloatMode::Reassoc));
  nearest.markIfRoundingDecides(bytesOf<int>({1, 5, 3}));
  EXPECT_FALSE(compareBuffer(nearest, bytesOf<int>({1, 2, 4}), FloatMode::Reassoc));
}

TEST(Compare, SizesMustMatch) {
  BufferReference r = floats({1, 2}, {1, 2}, {1, 2});
  EXPECT_FALSE(same(r, {1}));
}
