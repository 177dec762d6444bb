//===- LegalActionsTest.cpp - actions that are found when asked for -------===//
#include "optiml/Core/LegalActions.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {
/// A transform's actions on a kernel, which counts how often they are looked for.
LegalActions::Find counted(unsigned &times, std::vector<ActionTemplate> actions) {
  return [&times, actions] {
    ++times;
    return actions;
  };
}

std::string sitesOf(const LegalActions &legal) {
  std::string sites;
  for (const ActionTemplate &action : legal)
    sites += action.transform + "[" + action.site + "] ";
  return sites;
}
} // namespace

TEST(LegalActions, AreFoundWhenAskedForAndOnce) {
  unsigned tiles = 0, unrolls = 0;
  LegalActions legal;
  legal.defer("k", "tile", counted(tiles, {{"tile", "k", {{{"x", "8"}}}}}));
  legal.defer("k", "unroll", counted(unrolls, {{"unroll", "k/i", {{}}}, {"unroll", "k/j", {{}}}}));
  EXPECT_EQ(legal.of("tile").size(), 1u);
  EXPECT_EQ(unrolls, 0u);
  LegalActions copy = legal;
  EXPECT_TRUE(copy.offers({"tile", "k", {{"x", "8"}}}));
  EXPECT_FALSE(copy.offers({"tile", "k", {{"x", "16"}}}));
  EXPECT_FALSE(copy.offers({"tile", "m", {{"x", "8"}}}));
  EXPECT_EQ(sitesOf(copy), "tile[k] unroll[k/i] unroll[k/j] ");
  EXPECT_EQ(sitesOf(legal), sitesOf(copy));
  EXPECT_EQ(tiles, 1u);
  EXPECT_EQ(unrolls, 1u);
  EXPECT_TRUE(legal.of("fuse").empty());
}

TEST(LegalActions, OfAnotherKernelAreShared) {
  unsigned first = 0, second = 0, changed = 0;
  LegalActions before;
  before.defer("a", "tile", counted(first, {{"tile", "a", {{}}}}));
  before.defer("b", "tile", counted(second, {{"tile", "b", {{}}}}));
  LegalActions after;
  after.shareFrom(before, "a");
  after.defer("b", "tile", counted(changed, {{"tile", "b/i", {{}}}}));
  EXPECT_EQ(sitesOf(after), "tile[a] tile[b/i] ");
  EXPECT_EQ(sitesOf(before), "tile[a] tile[b] ");
  EXPECT_EQ(first, 1u);
}

TEST(LegalActions, ACopyGrowsAlone) {
  LegalActions legal = {{"tile", "k", {{}}}};
  LegalActions copy = legal;
  copy.push_back({"unroll", "k/i", {{}}});
  EXPECT_EQ(legal.size(), 1u);
  EXPECT_EQ(copy.size(), 2u);
  EXPECT_TRUE(LegalActions().empty());
}
