//===- ActionTest.cpp - actions and recipes as text and JSON --------------===//
#include "optiml/Core/Action.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>
#include <random>

using namespace optiml;

static Recipe randomRecipe(std::mt19937 &random) {
  auto pick = [&](unsigned n) { return unsigned(random() % n); };
  static const char *transforms[] = {"coarsen", "stage-shared", "block-shape", "unroll"};
  static const char *sites[] = {"sgemm", "ns::scale<float, 4>/k:A+B", "f<(int)3>/i.0/j:out", ""};
  static const char *names[] = {"x", "y", "tile", "style"};
  static const char *values[] = {"8", "-1", "blocked", "1.5", "a_b"};
  Recipe recipe(pick(5));
  for (Action &action : recipe) {
    action.transform = transforms[pick(4)];
    action.site = sites[pick(4)];
    for (unsigned i = pick(4); i > 0; --i)
      action.params[names[pick(4)]] = values[pick(5)];
  }
  return recipe;
}

TEST(Action, RecipesRoundTripThroughTextAndJson) {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    Recipe recipe = randomRecipe(random);
    auto fromText = parseRecipe(recipeText(recipe));
    ASSERT_TRUE(bool(fromText)) << llvm::toString(fromText.takeError());
    EXPECT_EQ(*fromText, recipe);
    auto fromJson = recipeFromJson(nlohmann::json::parse(toJson(recipe).dump()));
    ASSERT_TRUE(bool(fromJson)) << llvm::toString(fromJson.takeError());
    EXPECT_EQ(*fromJson, recipe);
  }
}

TEST(Action, MistakesAreNamed) {
  for (const char *text : {"coarsen", "[sgemm]", "coarsen[sgemm", "coarsen[sgemm]{x}", "coarsen[sgemm]{x=1,x=2}",
                           "coarsen[sgemm]x=1", "coarsen[sgemm]{x=}"}) {
    auto action = Action::parse(text);
    ASSERT_FALSE(bool(action)) << text;
    EXPECT_NE(llvm::toString(action.takeError()).find(text), std::string::npos);
  }
  auto wrong = recipeFromJson(nlohmann::json::parse(R"([{"transform":1,"site":"s"}])"));
  EXPECT_FALSE(bool(wrong));
  llvm::consumeError(wrong.takeError());
}

TEST(Action, IntegerParametersHaveAFallback) {
  Params params{{"x", "8"}, {"style", "blocked"}};
  EXPECT_EQ(paramInt(params, "x", 1), 8);
  EXPECT_EQ(paramInt(params, "y", 1), 1);
  EXPECT_EQ(paramInt(params, "style", 3), 3);
}
