//===- RewardTest.cpp - how a variant is scored ---------------------------===//
#include "optiml/Evaluate/Reward.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace optiml;

static Measurement timed(std::vector<double> launches) {
  Measurement m;
  m.verdict = Verdict::Correct;
  m.time.perLaunch = launches;
  for (double seconds : launches)
    m.time.seconds += seconds;
  m.resources = {32, 0, 0, 0, 0.5};
  return m;
}

TEST(Reward, TheBaselineScoresNothing) {
  Measurement base = timed({1, 2});
  score(base, base, {1, 1});
  EXPECT_EQ(base.reward, 0);
  EXPECT_EQ(base.time.baseline, 3);
  EXPECT_TRUE(base.guardrails.empty());
}

TEST(Reward, IsTheLogarithmOfTheSpeedup) {
  Measurement base = timed({4}), variant = timed({1});
  score(variant, base, {1});
  EXPECT_NEAR(variant.reward, 2, 1e-12);
}

TEST(Reward, ProxiesOnlyBreakTies) {
  Measurement base = timed({1});
  Measurement even = timed({0.5}), better = timed({0.5}), slower = timed({0.56});
  better.counters = {{"roofline", 0.5}};
  slower.counters = {{"roofline", 1}};
  even.counters = {{"bank_conflicts_per_request", 3}};
  for (Measurement *m : {&even, &better, &slower})
    score(*m, base, {1});
  EXPECT_GT(better.reward, even.reward);
  EXPECT_GT(better.reward, slower.reward);
  EXPECT_NEAR(better.reward, 1, 0.1);
}

TEST(Reward, GuardrailsAreNamedAndCost) {
  Measurement base = timed({1, 1});
  Measurement slowedOne = timed({0.2, 1.2}), spilled = timed({0.5, 0.5}), inaccurate = timed({0.5, 0.5});
  spilled.resources.spillLoads = 8;
  spilled.time.predicted = true;
  inaccurate.counters["error_ratio"] = 10;
  for (Measurement *m : {&slowedOne, &spilled, &inaccurate}) {
    score(*m, base, {1, 1});
    ASSERT_EQ(m->guardrails.size(), 1u);
  }
  EXPECT_NE(slowedOne.guardrails[0].find("launch 2"), std::string::npos);
  EXPECT_NEAR(spilled.reward, 0.5, 1e-9);
  spilled.time.predicted = false; // the measured time has the spills in it
  score(spilled, base, {1, 1});
  EXPECT_TRUE(spilled.guardrails.empty());
  Measurement clean = timed({0.5, 0.5});
  score(clean, base, {1, 1});
  EXPECT_TRUE(clean.guardrails.empty());
}

TEST(Reward, ALaunchThatHardlyMattersMayGetSlower) {
  Measurement base = timed({1, 0.001}), variant = timed({0.5, 0.002});
  score(variant, base, {1, 1});
  EXPECT_TRUE(variant.guardrails.empty());
  score(variant, base, {1, 100}); // it is made often
  EXPECT_EQ(variant.guardrails.size(), 1u);
}

TEST(Reward, NotANumberIsNotAWin) {
  Measurement base = timed({1}), variant = timed({NAN});
  score(variant, base, {1});
  EXPECT_FALSE(variant.reward > 0);
}
