//===- SuspectsTest.cpp - what is verified next ---------------------------===//
#include "Measure/Suspects.h"
#include "gtest/gtest.h"

using namespace optiml;

static Recipe recipeOf(const char *text) { return llvm::cantFail(parseRecipe(text)); }

TEST(Suspects, AnActionThatFellIsAvoided) {
  Suspects suspects;
  const Recipe bad = recipeOf("distribute-loop[k]{threads=256};unroll[k/j]{factor=16}"),
               like = recipeOf("distribute-loop[k]{threads=128};unroll[k/j]{factor=16}"),
               without = recipeOf("distribute-loop[k]{threads=256}"), other = recipeOf("block-shape[k]{x=64}");
  EXPECT_EQ(suspects.chance(bad), 1);
  suspects.add(bad, false);
  EXPECT_LT(suspects.chance(like), 1);
  EXPECT_LT(suspects.chance(bad), suspects.chance(without));
  EXPECT_EQ(suspects.chance(other), 1);
  suspects.add(without, true);
  EXPECT_GT(suspects.chance(without), suspects.chance(like));
  for (int i = 0; i < 3; ++i)
    suspects.add(like, false);
  EXPECT_LT(suspects.chance(like), 0.25);
  EXPECT_GT(suspects.chance(without), 0.5);
}

TEST(Suspects, AnActionCountsOnceInARecipe) {
  Suspects suspects;
  suspects.add(recipeOf("unroll[k/j]{factor=2};unroll[k/j]{factor=2}"), false);
  EXPECT_EQ(suspects.chance(recipeOf("unroll[k/j]{factor=2};unroll[k/j]{factor=2}")), 0.5);
}
