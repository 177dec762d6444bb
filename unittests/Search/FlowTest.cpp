//===- FlowTest.cpp - searches in which nobody waits ----------------------===//
#include "ToySearch.h"
#include "gtest/gtest.h"

using namespace optiml;

static SearchSettings flowing(unsigned evaluations, unsigned jobs) {
  SearchSettings settings = budget(evaluations);
  settings.flows = true;
  settings.jobs = jobs;
  settings.batch = 16;
  settings.screen = 0;
  return settings;
}

/// A line for every value of every switch.
static std::vector<OpeningLine> everyValue(std::initializer_list<const char *> names, int values) {
  std::vector<OpeningLine> book;
  for (const char *name : names)
    for (int v = 1; v <= values; ++v)
      book.push_back({name + std::to_string(v), {{name, "*", {{{"v", std::to_string(v)}}}, /*required=*/true}}});
  return book;
}

TEST(Flow, FindsTheValleyWithinTheBudgetAndEvaluatesNothingTwice) {
  for (unsigned jobs : {1u, 2u, 7u})
    for (Strategy strategy : {Strategy::Mcts, Strategy::Beam, Strategy::Random}) {
      ToySpace space(plantedNames, 3);
      ToyEvaluator evaluator(valley);
      SearchSettings settings = flowing(150, jobs);
      settings.strategy = strategy;
      settings.top = 200;
      SearchResult result = run(space, evaluator, settings);
      EXPECT_LE(result.statistics.evaluations, 150u);
      for (const auto &[call, count] : evaluator.calls)
        EXPECT_EQ(count, 1u) << call.first;
      if (strategy != Strategy::Mcts)
        continue;
      EXPECT_EQ(result.stop, StopReason::Evaluations);
      EXPECT_GT(result.best.speedup(), 1.9);
    }
}

TEST(Flow, EndsWhereNothingIsLeft) {
  ToySpace space({"a", "b"}, 2);
  ToyEvaluator evaluator(valley);
  evaluator.delay = std::chrono::milliseconds(2);
  SearchResult result = run(space, evaluator, flowing(0, 4));
  EXPECT_EQ(result.stop, StopReason::Exhausted);
  EXPECT_EQ(result.statistics.evaluations, 8u); // all but the original
}

TEST(Flow, TheSlowestHoldsNobodyUp) {
  struct OneIsSlow : ToyEvaluator {
    using ToyEvaluator::ToyEvaluator;
    Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
      if (variant.text == "a1;")
        for (int i = 0; i < 2000 && count() < 30; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      else if (!variant.text.empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Measurement m = ToyEvaluator::evaluate(variant, fidelity);
      if (variant.text == "a1;")
        others = count();
      return m;
    }
    size_t count() {
      std::lock_guard lock(mutex);
      return calls.size();
    }
    size_t others = 0;
  };
  for (bool isLine : {true, false}) {
    ToySpace space({"a", "b", "c", "d", "e"}, 3);
    OneIsSlow evaluator(valley);
    ToyProposer proposer;
    if (isLine)
      proposer.book = {{"slow", {{"a", "*", {{{"v", "1"}}}, /*required=*/true}}}};
    else
      proposer.priors = {{"a", 1}};
    SearchResult result = run(space, evaluator, flowing(60, 4), nullptr, nullptr, &proposer);
    EXPECT_EQ(result.statistics.evaluations, 60u);
    EXPECT_GE(evaluator.others, 30u); // a batch of 16 would have waited for it
  }
}

TEST(Flow, ALineThatDoesNotApplyIsNoEvaluation) {
  ToySpace space({"a", "b"}, 1);
  space.refuse = [](const Action &action) { return action.transform == "a"; };
  ToyEvaluator evaluator(valley);
  ToyProposer proposer;
  for (int i = 0; i < 9; ++i)
    proposer.book.push_back({"line " + std::to_string(i), {{"a", "*", {}, /*required=*/true}}});
  proposer.book.push_back({"applies", {{"b", "*", {}, /*required=*/true}}});
  SearchResult result = run(space, evaluator, flowing(0, 3), nullptr, nullptr, &proposer);
  EXPECT_EQ(result.stop, StopReason::Exhausted);
  EXPECT_EQ(result.statistics.evaluations, 1u);
}

TEST(Flow, KeepsToTheBudgetOfTime) {
  ToySpace space({"a", "b", "c", "d", "e", "f", "g", "h"}, 5);
  ToyEvaluator evaluator(valley);
  evaluator.delay = std::chrono::milliseconds(10);
  SearchSettings settings = flowing(0, 3);
  settings.seconds = 0.3;
  SearchResult result = run(space, evaluator, settings);
  EXPECT_EQ(result.stop, StopReason::Seconds);
  EXPECT_LT(result.statistics.seconds, 2.5);
  EXPECT_GT(result.statistics.evaluations, 3u);
}

TEST(Flow, LinesThatAreUnderWayAtTheEndAreTold) {
  ToySpace space({"a", "b", "c"}, 9);
  ToyEvaluator evaluator(valley);
  evaluator.delay = std::chrono::milliseconds(40);
  ToyProposer proposer;
  proposer.book = everyValue({"a", "b", "c"}, 9);
  SearchSettings settings = flowing(0, 6);
  settings.seconds = 0.1;
  Recorder recorder;
  SearchResult result = run(space, evaluator, settings, &recorder, nullptr, &proposer);
  EXPECT_EQ(result.stop, StopReason::Seconds);
  EXPECT_EQ(recorder.keys.size(), result.statistics.evaluations);
}

TEST(Flow, WhatIsUnderWayCountsAgainstTheBudget) {
  ToySpace space({"a", "b", "c"}, 3);
  ToyEvaluator evaluator(valley);
  evaluator.delay = std::chrono::milliseconds(5);
  ToyProposer proposer;
  proposer.book = everyValue({"a", "b", "c"}, 3);
  for (unsigned evaluations : {1u, 2u, 5u, 9u, 10u}) {
    SearchResult result = run(space, evaluator, flowing(evaluations, 6), nullptr, nullptr, &proposer);
    EXPECT_EQ(result.statistics.evaluations, evaluations);
    EXPECT_EQ(result.stop, StopReason::Evaluations);
  }
}
