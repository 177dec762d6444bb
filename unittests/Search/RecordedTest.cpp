//===- RecordedTest.cpp - searching a table of measured variants ----------===//
#include "optiml/Search/Recorded.h"
#include "optiml/Search/Search.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

RecordedVariant variant(const char *recipe, double seconds, Verdict verdict = Verdict::Correct) {
  RecordedVariant v;
  v.recipe = llvm::cantFail(parseRecipe(recipe));
  v.key = std::string("key of ") + recipe;
  v.measurement.verdict = verdict;
  v.measurement.time.seconds = seconds;
  v.measurement.time.baseline = 8;
  v.measurement.reward = 8 / seconds;
  v.verified = verdict != Verdict::Predicted;
  return v;
}

std::unique_ptr<RecordedSpace> example() {
  return llvm::cantFail(RecordedSpace::create({variant("", 8), variant("a[k]{x=1}", 4), variant("a[k]{x=2}", 6),
                                               variant("b[k];c[k];d[k]", 1, Verdict::Predicted),
                                               variant("w[k]", 1, Verdict::WrongResult)}));
}

struct EvenProposer : Proposer {
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &, unsigned) override {
    return std::vector<Proposal>();
  }
  std::vector<OpeningLine> openingBook(const SearchState &) override { return {}; }
};

} // namespace

TEST(Recorded, LegalIsWhatRecipesGoOnWith) {
  auto space = example();
  SearchState root = llvm::cantFail(space->root());
  ASSERT_EQ(root.legal.size(), 3u);
  EXPECT_EQ(root.legal[0].values.size(), 2u);
  SearchState b = llvm::cantFail(space->apply(root, {"b", "k", {}}));
  ASSERT_EQ(b.legal.size(), 1u);
  EXPECT_EQ(b.legal[0].transform, "c");
  auto refused = space->apply(root, {"c", "k", {}});
  EXPECT_FALSE(bool(refused));
  llvm::consumeError(refused.takeError());
}

TEST(Recorded, WhatWasNotEvaluatedIsAsSlowAsWhatStandsBeforeIt) {
  auto space = example();
  SearchState b = llvm::cantFail(space->apply(llvm::cantFail(space->root()), {"b", "k", {}}));
  EXPECT_EQ(space->evaluate(*b.variant, Fidelity::Verified).time.seconds, 8);
  EXPECT_EQ(space->size(), 5u);
  EXPECT_EQ(space->bestSpeedup(), 8);
}

TEST(Recorded, ASearchFindsTheBestAndNotWhatIsWrong) {
  for (Strategy strategy : {Strategy::Mcts, Strategy::Random, Strategy::Beam}) {
    auto space = example();
    EvenProposer proposer;
    SearchSettings settings;
    settings.evaluations = 40;
    settings.seconds = 0;
    settings.strategy = strategy;
    auto result = llvm::cantFail(runSearch(*space, proposer, *space, settings));
    EXPECT_EQ(recipeText(result.best.recipe), "b[k];c[k];d[k]") << strategyName(strategy);
  }
}

TEST(Recorded, NeedsTheOriginal) {
  auto space = RecordedSpace::create({variant("a[k]", 4)});
  ASSERT_FALSE(bool(space));
  EXPECT_NE(llvm::toString(space.takeError()).find("original"), std::string::npos);
}
