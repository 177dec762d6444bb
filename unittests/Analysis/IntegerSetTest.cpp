//===- IntegerSetTest.cpp - projections against enumeration ---------------===//
#include "optiml/Analysis/IntegerSet.h"
#include "PolyValue.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace optiml;

namespace {

bool holds(const std::vector<Poly> &facts, const std::map<std::string, int64_t> &at) {
  for (const Poly &fact : facts)
    if (valueOf(fact, at) < 0)
      return false;
  return true;
}

class RandomSets : public testing::TestWithParam<unsigned> {};

} // namespace

/// Tiles as stage-shared asks for them: rows and columns reached by a few loop variables, cut off at a size n.
TEST_P(RandomSets, ProjectionsAreExact) {
  std::mt19937 random(GetParam());
  auto number = [&](int least, int most) { return int64_t(least + int(random() % unsigned(most - least + 1))); };
  const Poly i = Poly::atom("i"), j = Poly::atom("j"), n = Poly::atom("n");
  std::vector<SetPiece> pieces;
  for (int64_t count = number(1, 2); count; --count) {
    SetPiece piece;
    piece.values = {Poly(number(1, 2)) * i + Poly(number(0, 1)) * j + Poly(number(-2, 2)), j + Poly(number(-1, 1))};
    piece.facts = {i, Poly(number(1, 5)) - i, j, Poly(number(1, 5)) - j, n - Poly(1) - i};
    pieces.push_back(piece);
  }
  std::vector<Poly> context = {n, Poly(8) - n};
  auto projected = projectSet({"x", "y"}, {"i", "j"}, pieces, context);
  if (!projected)
    return; // not one convex set: nothing is claimed
  for (int64_t size = 0; size <= 8; ++size)
    for (int64_t x = -6; x <= 20; ++x)
      for (int64_t y = -6; y <= 12; ++y) {
        bool reached = false;
        for (const SetPiece &piece : pieces)
          for (int64_t a = 0; a <= 6 && !reached; ++a)
            for (int64_t b = 0; b <= 6 && !reached; ++b) {
              std::map<std::string, int64_t> at = {{"i", a}, {"j", b}, {"n", size}};
              reached =
                  holds(piece.facts, at) && valueOf(piece.values[0], at) == x && valueOf(piece.values[1], at) == y;
            }
        ASSERT_EQ(holds(*projected, {{"x", x}, {"y", y}, {"n", size}}), reached) << x << " " << y << " n=" << size;
      }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSets, testing::Range(1u, 61u));

TEST(IntegerSet, ATileOfAMatrixIsItsBox) {
  const Poly i = Poly::atom("i"), k0 = Poly::atom("k0"), n = Poly::atom("n");
  SetPiece piece{{k0 + i}, {i, Poly(7) - i, n - Poly(1) - k0 - i}};
  auto box = projectSet({"x"}, {"i"}, {piece}, {k0, n - Poly(1) - k0});
  ASSERT_TRUE(box);
  for (int64_t x = -2; x < 20; ++x)
    EXPECT_EQ(holds(*box, {{"x", x}, {"k0", 4}, {"n", 10}}), x >= 4 && x < 10) << x;
}

TEST(IntegerSet, AnInnerPartAndItsEdgesAreOneBox) {
  const Poly x = Poly::atom("i"), y = Poly::atom("j"), n = Poly::atom("n"), one(1), two(2);
  const std::vector<Poly> box = {x, n - one - x, y, n - one - y};
  std::vector<SetPiece> pieces = {{{x, y}, {x - one, n - two - x, y - one, n - two - y}}};
  for (const Poly &edge : {Poly(-1) * x, x - n + one, Poly(-1) * y, y - n + one}) {
    std::vector<Poly> facts = box;
    facts.push_back(edge);
    pieces.push_back({{x, y}, facts});
  }
  auto all = projectSet({"x", "y"}, {"i", "j"}, pieces, {n - one});
  ASSERT_TRUE(all);
  for (int64_t size = 1; size <= 5; ++size)
    for (int64_t a = -1; a <= 6; ++a)
      for (int64_t b = -1; b <= 6; ++b)
        EXPECT_EQ(holds(*all, {{"x", a}, {"y", b}, {"n", size}}), a >= 0 && a < size && b >= 0 && b < size)
            << a << " " << b << " n=" << size;
  pieces.pop_back(); // without the last row
  EXPECT_FALSE(projectSet({"x", "y"}, {"i", "j"}, pieces, {n - one}));
}

TEST(IntegerSet, WhatIsNoConvexSetIsNotClaimed) {
  const Poly i = Poly::atom("i");
  SetPiece even{{Poly(2) * i}, {i, Poly(5) - i}};
  EXPECT_FALSE(projectSet({"x"}, {"i"}, {even}, {}));
  SetPiece low{{i}, {i, Poly(2) - i}}, high{{i}, {i - Poly(6), Poly(8) - i}};
  EXPECT_FALSE(projectSet({"x"}, {"i"}, {low, high}, {}));
  SetPiece product{{i * Poly::atom("n")}, {i, Poly(2) - i}};
  EXPECT_FALSE(projectSet({"x"}, {"i"}, {product}, {}));
}
