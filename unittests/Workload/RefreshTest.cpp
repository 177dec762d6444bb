//===- RefreshTest.cpp ----------------------------------------------------===//
#include "optiml/Workload/Signature.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <set>

using namespace optiml;

namespace {
constexpr ElementType floats{ElementKind::Float, 4}, integers{ElementKind::Integer, 4};

template <typename T>
bool refresh(std::vector<T> &v, const ElementType &type, FreshIntegers how, FloatRange range, uint64_t seed = 7) {
  return refreshElements(reinterpret_cast<char *>(v.data()), v.size() * sizeof(T), type, seed, how, range);
}

std::vector<float> ofRange(FloatRange range, size_t n = 1000) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i)
    v[i] = float(i % 17) / 8 - 1;
  EXPECT_TRUE(refresh(v, floats, FreshIntegers::Keep, range));
  return v;
}

std::vector<int> arranged(std::vector<int> v, FreshIntegers how) {
  refresh(v, integers, how, FloatRange::Same);
  return v;
}
} // namespace

TEST(Refresh, NamesAreRead) {
  for (FloatRange range : {FloatRange::Same, FloatRange::Masked, FloatRange::LoneNaN})
    EXPECT_EQ(floatRangeNamed(nameOf(range)), range);
  EXPECT_EQ(freshIntegersNamed("equal"), FreshIntegers::Equal);
  EXPECT_FALSE(floatRangeNamed("").has_value());
}

TEST(Refresh, RangesOfFloatsHoldWhatTheySay) {
  std::vector<float> few = ofRange(FloatRange::Few), extreme = ofRange(FloatRange::Extreme, 100000),
                     lone = ofRange(FloatRange::LoneNaN), masked = ofRange(FloatRange::Masked);
  EXPECT_EQ(std::set<float>(few.begin(), few.end()).size(), 3u);
  EXPECT_EQ(std::count_if(lone.begin(), lone.end(), [](float v) { return std::isnan(v); }), 1);
  EXPECT_TRUE(std::any_of(masked.begin(), masked.end(), [](float v) { return std::isinf(v) && v < 0; }));
  bool huge = false, denormal = false, minusZero = false;
  for (float v : extreme) {
    EXPECT_TRUE(std::isfinite(v * v));
    huge |= std::fabs(v) > 1e15f;
    denormal |= std::fpclassify(v) == FP_SUBNORMAL;
    minusZero |= v == 0 && std::signbit(v);
  }
  EXPECT_TRUE(huge && denormal && minusZero);
}

TEST(Refresh, HalvesCanBeInfiniteAndNaN) {
  std::vector<uint16_t> v(1000, 0x3C00);
  const ElementType half{ElementKind::Half, 2};
  EXPECT_TRUE(refresh(v, half, FreshIntegers::Keep, FloatRange::LoneNaN));
  EXPECT_EQ(std::count_if(v.begin(), v.end(), [](uint16_t bits) { return isNan16(bits, Format16::Half); }), 1);
}

TEST(Refresh, OffsetsKeepTheirOrderAndEnds) {
  const std::vector<int> offsets = {0, 3, 3, 8, 20, 21, 40};
  for (FreshIntegers how :
       {FreshIntegers::Drawn, FreshIntegers::Equal, FreshIntegers::Reversed, FreshIntegers::Sorted}) {
    std::vector<int> v = arranged(offsets, how);
    EXPECT_TRUE(std::is_sorted(v.begin(), v.end()));
    EXPECT_EQ(v.front(), 0);
    EXPECT_EQ(v.back(), 40);
  }
  EXPECT_EQ(arranged(offsets, FreshIntegers::Equal)[5], 0);
  EXPECT_EQ(arranged(offsets, FreshIntegers::Reversed)[1], 40);
}

TEST(Refresh, PermutationsStayPermutations) {
  const std::vector<int> turned = {3, 0, 2, 1, 4}, numbers = {0, 1, 2, 3, 4};
  for (FreshIntegers how :
       {FreshIntegers::Drawn, FreshIntegers::Equal, FreshIntegers::Reversed, FreshIntegers::Sorted}) {
    std::vector<int> v = arranged(turned, how);
    EXPECT_EQ(std::set<int>(v.begin(), v.end()).size(), 5u);
    EXPECT_EQ(arranged(numbers, how), numbers);
  }
  EXPECT_EQ(arranged(turned, FreshIntegers::Sorted), numbers);
}

TEST(Refresh, ExtremeIntegersAreTheTypes) {
  std::vector<uint8_t> v(5000, 40);
  EXPECT_TRUE(refresh(v, {ElementKind::Integer, 1, /*isUnsigned=*/true}, FreshIntegers::Extreme, FloatRange::Same));
  EXPECT_TRUE(std::count(v.begin(), v.end(), 255) > 1 && std::count(v.begin(), v.end(), 0) > 1);
  std::vector<int> w(5000, 40);
  EXPECT_TRUE(refresh(w, integers, FreshIntegers::Extreme, FloatRange::Same));
  EXPECT_EQ(*std::max_element(w.begin(), w.end()), INT_MAX);
  EXPECT_EQ(*std::min_element(w.begin(), w.end()), INT_MIN);
}

TEST(Refresh, WhatNothingHasWrittenStays) {
  const int unwritten = int(0xCCCCCCCC);
  std::vector<int> v = arranged({5, 1, 5, 2, unwritten}, FreshIntegers::Sorted);
  EXPECT_EQ(v, (std::vector<int>{1, 2, 5, 5, unwritten}));
  v = arranged({5, 1, 5, 2, unwritten}, FreshIntegers::Equal);
  EXPECT_EQ(std::set<int>(v.begin(), v.end() - 1).size(), 1u);
  EXPECT_EQ(v.back(), unwritten);
}

TEST(Refresh, PlacesInStructuresAreRead) {
  std::optional<RecordLayout> layout = recordLayout("{24: float@0 double@8 unsigned int@16 __half@20}");
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->bytes, 24u);
  ASSERT_EQ(layout->fields.size(), 4u);
  EXPECT_EQ(layout->fields[1].offset, 8u);
  EXPECT_EQ(layout->fields[1].type.kind, ElementKind::Double);
  EXPECT_TRUE(layout->fields[2].type.isUnsigned);
  for (const char *other : {"float", "{}", "{24}", "{24: float}", "{24: float@x}", "{8: double@4}", "{24: float@0", "?",
                            "{0:}", "{8: float@18446744073709551614}"})
    EXPECT_FALSE(recordLayout(other).has_value()) << other;
}

TEST(Refresh, NumbersInStructuresChange) {
  struct Item {
    float weight;
    int number;
    double value;
  };
  std::vector<Item> items(1000);
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = {float(i % 7), int(i), double(i % 11)};
  const std::vector<Item> before = items;
  char *data = reinterpret_cast<char *>(items.data());
  const std::string layout = "{16: float@0 int@4 double@8}";
  ASSERT_TRUE(refreshBuffer(data, items.size() * sizeof(Item), layout, 3, FreshIntegers::Random, FloatRange::LoneNaN));
  size_t changed = 0, none = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].number, before[i].number);
    changed += items[i].weight != before[i].weight && items[i].value != before[i].value;
    none += std::isnan(items[i].weight) + std::isnan(items[i].value);
  }
  EXPECT_GT(changed, 900u);
  EXPECT_EQ(none, 1u);
  EXPECT_FALSE(refreshBuffer(data, 8, layout, 3, FreshIntegers::Random));
}

// Several chunks, the last one of which is not full.
TEST(Refresh, LargeBuffersAreShuffledAsAWhole) {
  std::vector<int> v(3'500'000), before;
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = int(i);
  before = v;
  std::vector<int> once = arranged(v, FreshIntegers::Shuffle);
  EXPECT_EQ(once, arranged(v, FreshIntegers::Shuffle)) << "one seed, one order";
  size_t fixed = 0, near = 0;
  for (size_t i = 0; i < once.size(); ++i) {
    fixed += once[i] == before[i];
    near += std::abs(once[i] - before[i]) < 1000;
  }
  EXPECT_LT(fixed, 100u);
  EXPECT_LT(near, v.size() / 100);
  std::sort(once.begin(), once.end());
  EXPECT_EQ(once, before);
}
