//===- SearchTest.cpp - how the search behaves ----------------------------===//
//
// On the made-up action spaces of ToySearch.h. Every test states one promise of Search.h.
//
//===----------------------------------------------------------------------===//
#include "ToySearch.h"
#include "gtest/gtest.h"

using namespace optiml;

TEST(Search, FindsWhatPaysOnlyTogether) {
  unsigned found = 0, foundGreedily = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed)
    for (Strategy strategy : {Strategy::Mcts, Strategy::Greedy}) {
      ToySpace space(plantedNames, 2);
      ToyEvaluator evaluator(planted);
      SearchSettings settings = budget(400);
      settings.strategy = strategy;
      settings.seed = seed;
      bool hit = run(space, evaluator, settings).best.measurement.time.seconds < 0.2;
      (strategy == Strategy::Mcts ? found : foundGreedily) += hit;
    }
  EXPECT_GE(found, 7u);
  EXPECT_EQ(foundGreedily, 0u); // or the plant would prove nothing
}

TEST(Search, PriorsShortenTheWay) {
  auto evaluationsNeeded = [](ToyProposer proposer) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      ToySpace space(plantedNames, 3);
      ToyEvaluator evaluator(planted);
      SearchSettings settings = budget(600);
      settings.seed = seed;
      Recorder recorder;
      run(space, evaluator, settings, &recorder, nullptr, &proposer);
      size_t at = 0;
      for (size_t i = 0; i < recorder.trajectory.size(); ++i)
        if (recorder.trajectory[i].ends_with("improved"))
          at = i;
      sum += at ? at : 600;
    }
    return sum;
  };
  ToyProposer good, bad;
  good.priors = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 0.1}};
  bad.priors = {{"d", 1}, {"e", 1}, {"f", 1}, {"g", 1}};
  EXPECT_LT(evaluationsNeeded(good), evaluationsNeeded(bad));
}

TEST(Search, BeatsRandomOnAValley) {
  double times[2];
  for (Strategy strategy : {Strategy::Mcts, Strategy::Random}) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      ToySpace space({"a", "b", "c", "d", "e"}, 5);
      ToyEvaluator evaluator(valley);
      SearchSettings settings = budget(60);
      settings.strategy = strategy;
      settings.seed = seed;
      sum += run(space, evaluator, settings).best.measurement.time.seconds;
    }
    times[int(strategy)] = sum;
  }
  EXPECT_LT(times[int(Strategy::Mcts)], times[int(Strategy::Random)]);
}

TEST(Search, TheBestIsVariedOneDetailAtATime) {
  // Two details of a line of the book, each right in one of twelve ways, and many other things that do nothing.
  std::vector<std::string> names = {"tile", "threads"};
  for (char c = 'a'; c <= 'z'; ++c)
    names.push_back(std::string(1, c));
  ToySpace space(names, 12);
  ToyEvaluator evaluator([](const Settings &s) {
    if (!s.count("tile") || !s.count("threads"))
      return 100.0;
    return 20 + 3.0 * std::abs(valueOf(s, "tile") - 6) + 2.0 * std::abs(valueOf(s, "threads") - 4);
  });
  ToyProposer proposer;
  proposer.book.push_back({"tiles", {{"tile", "*", {}}, {"threads", "*", {}}}});
  SearchSettings settings = budget(40);
  settings.screen = 0;
  SearchResult result = run(space, evaluator, settings, nullptr, nullptr, &proposer);
  EXPECT_EQ(recipeText(result.best.recipe), "tile[k]{v=6};threads[k]{v=4}");
}

TEST(Search, GreedyClimbsToALocalOptimum) {
  ToySpace space({"a", "b", "c", "d", "e"}, 5);
  ToyEvaluator evaluator(valley);
  SearchSettings settings = budget(500);
  settings.strategy = Strategy::Greedy;
  settings.screen = 5;
  SearchResult result = run(space, evaluator, settings);
  EXPECT_NEAR(result.best.measurement.time.seconds, std::pow(0.7, 5), 1e-9);
  EXPECT_EQ(result.stop, StopReason::Exhausted);
}

TEST(Search, ABeamCrossesWhatGreedyCannot) {
  // The best variant lies behind two steps of which each alone costs.
  auto seconds = [](const Settings &s) {
    bool a = valueOf(s, "a") == 1, b = valueOf(s, "b") == 1;
    return a && b ? 0.1 : 1 + 0.1 * valueOf(s, "a") + 0.1 * valueOf(s, "b");
  };
  for (auto [strategy, expected] : {std::pair(Strategy::Greedy, 1.0), std::pair(Strategy::Beam, 0.1)}) {
    ToySpace space({"a", "b"}, 2);
    ToyEvaluator evaluator(seconds);
    SearchSettings settings = budget(40);
    settings.strategy = strategy;
    EXPECT_DOUBLE_EQ(run(space, evaluator, settings).best.measurement.time.seconds, expected) << strategyName(strategy);
  }
}

TEST(Search, ABeamGoesOnFromItsWidth) {
  // At depth one every value is worse than the one before, and behind the worst one stands the best.
  auto seconds = [](const Settings &s) {
    return valueOf(s, "a") == 4 && valueOf(s, "b") == 1 ? 0.1
                                                        : 1 + 0.1 * valueOf(s, "a") + 0.5 * (valueOf(s, "b") != 0);
  };
  for (auto [width, expected] : {std::pair(2u, 1.0), std::pair(6u, 0.1)}) {
    ToySpace space({"a", "b"}, 4);
    ToyEvaluator evaluator(seconds);
    SearchSettings settings = budget(30);
    settings.strategy = Strategy::Beam;
    settings.beamWidth = width;
    EXPECT_DOUBLE_EQ(run(space, evaluator, settings).best.measurement.time.seconds, expected) << width;
  }
}

TEST(Search, KeepsToTheBudgetOfEvaluations) {
  for (Strategy strategy : {Strategy::Mcts, Strategy::Random, Strategy::Greedy})
    for (unsigned n : {1u, 7u, 8u, 9u, 50u}) {
      ToySpace space({"a", "b", "c", "d", "e"}, 5);
      ToyEvaluator evaluator(valley);
      SearchSettings settings = budget(n);
      settings.strategy = strategy;
      SearchResult result = run(space, evaluator, settings);
      EXPECT_EQ(result.statistics.evaluations, n) << strategyName(strategy);
      EXPECT_EQ(evaluator.count(Fidelity::Verified), n + 1); // and the original
      EXPECT_EQ(result.stop, StopReason::Evaluations);
    }
}

TEST(Search, KeepsToTheBudgetOfTime) {
  ToySpace space({"a", "b", "c", "d", "e", "f", "g", "h"}, 5);
  ToyEvaluator evaluator(valley);
  evaluator.delay = std::chrono::milliseconds(1);
  SearchSettings settings = budget(0);
  settings.seconds = 0.5;
  SearchResult result = run(space, evaluator, settings);
  EXPECT_EQ(result.stop, StopReason::Seconds);
  EXPECT_LT(result.statistics.seconds, 2.5);
  EXPECT_GT(result.statistics.evaluations, 0u);
}

TEST(Search, WhatIsGivenUpForLackOfTimeIsNoFailureOfTheVariant) {
  struct Patient : ToyEvaluator {
    using ToyEvaluator::ToyEvaluator;
    void beginNothingAfter(std::chrono::steady_clock::time_point time) override { deadline = time; }
    Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
      if (!deadline)
        return ToyEvaluator::evaluate(variant, fidelity);
      std::this_thread::sleep_until(*deadline);
      Measurement m;
      m.why = "no GPU came free in time";
      return m;
    }
    std::optional<std::chrono::steady_clock::time_point> deadline;
  };
  ToySpace space(plantedNames, 3);
  Patient evaluator(valley);
  SearchSettings settings = budget(0);
  settings.seconds = 0.1;
  SearchResult result = run(space, evaluator, settings);
  EXPECT_EQ(result.stop, StopReason::Seconds);
  EXPECT_EQ(result.statistics.evaluations, 0u);
  EXPECT_EQ(result.statistics.failed, 0u);
}

TEST(Search, WhatTheEvaluatorWithdrawsIsNotTheBest) {
  // Everything is provisional; the fastest is found to be wrong while the search goes on.
  struct Hasty : ToyEvaluator {
    using ToyEvaluator::ToyEvaluator;
    Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
      Measurement m = ToyEvaluator::evaluate(variant, fidelity);
      m.provisional = !variant.text.empty();
      std::lock_guard lock(mutex);
      if (m.provisional && m.correct() && (wrong.empty() || m.time.seconds < fastest))
        wrong = variant.text, fastest = m.time.seconds;
      return m;
    }
    std::map<std::string, Measurement> withdrawn() override {
      if (!told.empty() || wrong.empty())
        return {};
      told = wrong;
      Measurement m;
      m.verdict = Verdict::WrongResult;
      m.why = "it is wrong on other inputs";
      return {{wrong, m}};
    }
    std::mutex mutex;
    std::string wrong, told;
    double fastest = 0;
  };
  ToySpace space(plantedNames, 3);
  Hasty evaluator(valley);
  SearchResult result = run(space, evaluator, budget(60));
  EXPECT_FALSE(evaluator.told.empty());
  EXPECT_NE(result.best.key, evaluator.told);
  for (const Candidate &candidate : result.top)
    EXPECT_NE(candidate.key, evaluator.told);
  EXPECT_EQ(result.statistics.failed, 1u);
}

TEST(Search, TheSameSeedGivesTheSameTrajectoryForAnyNumberOfJobs) {
  for (Strategy strategy : {Strategy::Mcts, Strategy::Random, Strategy::Greedy}) {
    std::vector<std::string> first;
    for (unsigned jobs : {1u, 4u, 3u}) {
      ToySpace space(plantedNames, 3);
      ToyEvaluator evaluator(planted);
      evaluator.fails = [](const Settings &s) { return valueOf(s, "e") == 2; };
      SearchSettings settings = budget(120);
      settings.strategy = strategy;
      settings.jobs = jobs;
      Recorder recorder;
      run(space, evaluator, settings, &recorder);
      if (first.empty())
        first = recorder.trajectory;
      EXPECT_EQ(recorder.trajectory, first) << strategyName(strategy) << " " << jobs;
    }
  }
}

TEST(Search, AnotherSeedGivesAnotherTrajectory) {
  Recorder recorders[2];
  for (int i = 0; i < 2; ++i) {
    ToySpace space(plantedNames, 3);
    ToyEvaluator evaluator(planted);
    SearchSettings settings = budget(60);
    settings.seed = 1 + i;
    run(space, evaluator, settings, &recorders[i]);
  }
  EXPECT_NE(recorders[0].trajectory, recorders[1].trajectory);
}

TEST(Search, NothingIsEvaluatedTwiceAndOrdersOfTheSameActionsAreOneVariant) {
  ToySpace space({"a", "b", "c"}, 2); // 27 variants, many orders each
  ToyEvaluator evaluator(valley);
  Recorder recorder;
  SearchResult result = run(space, evaluator, budget(500), &recorder);
  EXPECT_EQ(result.stop, StopReason::Exhausted);
  EXPECT_EQ(result.statistics.evaluations, 26u);
  EXPECT_EQ(result.statistics.variants, 27u);
  EXPECT_GT(result.statistics.transpositions, 0u);
  for (const auto &[key, count] : evaluator.calls)
    EXPECT_EQ(count, 1u) << key.first;
}

TEST(Search, AFailureCostsOneEvaluationAndEndsItsBranch) {
  ToySpace space({"a", "b", "c"}, 1);
  ToyEvaluator evaluator(valley);
  evaluator.fails = [](const Settings &s) { return valueOf(s, "a") == 1; };
  SearchSettings settings = budget(100);
  settings.rolloutChance = 0;
  Recorder recorder;
  SearchResult result = run(space, evaluator, settings, &recorder);
  // b, c, bc are fine; a fails, and what is built on a is reached only by way of b or c.
  EXPECT_EQ(result.statistics.correct, 3u);
  EXPECT_EQ(result.statistics.failed + result.statistics.correct, result.statistics.evaluations);
  EXPECT_EQ(evaluator.calls.count({"a1;b1;", Fidelity::Verified}), 1u);
  for (const auto &[key, count] : evaluator.calls)
    EXPECT_EQ(count, 1u) << key.first;
  EXPECT_FALSE(result.best.recipe.empty() && result.improved);
}

TEST(Search, WhatDoesNotApplyIsAskedOnceAndReported) {
  ToySpace space({"a", "b"}, 2);
  space.refuse = [](const Action &action) { return action.transform == "a"; };
  ToyEvaluator evaluator(valley);
  Recorder recorder;
  SearchSettings settings = budget(100);
  settings.rolloutChance = 0;
  SearchResult result = run(space, evaluator, settings, &recorder);
  EXPECT_EQ(result.stop, StopReason::Exhausted);
  EXPECT_EQ(result.statistics.evaluations, 2u); // b=1, b=2
  EXPECT_EQ(recorder.refusals.size(), result.statistics.notApplicable);
  EXPECT_EQ(space.applications, 8u); // a=1 a=2 b=1 b=2, and a on each b
}

TEST(Search, WhatTheModelRejectsCostsNoEvaluation) {
  ToySpace space({"a"}, 4);
  ToyEvaluator evaluator(valley);
  evaluator.fails = [](const Settings &s) { return valueOf(s, "a") >= 3; };
  Recorder recorder;
  SearchResult result = run(space, evaluator, budget(100), &recorder);
  EXPECT_EQ(result.statistics.evaluations, 2u);
  EXPECT_EQ(result.statistics.failed, 0u);
  EXPECT_EQ(recorder.refusals.size(), 2u);
}

TEST(Search, TheModelChoosesTheFirstValue) {
  ToySpace space({"a"}, 4);
  ToyEvaluator evaluator([](const Settings &s) { return valueOf(s, "a") == 3 ? 0.2 : 1; });
  SearchResult result = run(space, evaluator, budget(1));
  EXPECT_EQ(recipeText(result.best.recipe), "a[k]{v=3}");
}

TEST(Search, CancellingKeepsTheBest) {
  ToySpace space(plantedNames, 3);
  ToyEvaluator evaluator([](const Settings &s) { return s.empty() ? 1.0 : 0.5; });
  std::atomic<bool> cancel{false};
  std::atomic<unsigned> done{0};
  evaluator.afterVerified = [&] {
    if (++done == 12)
      cancel = true;
  };
  SearchSettings settings = budget(0);
  settings.cancel = &cancel;
  SearchResult result = run(space, evaluator, settings);
  EXPECT_EQ(result.stop, StopReason::Cancelled);
  EXPECT_TRUE(result.improved);
  EXPECT_LE(result.statistics.evaluations, 20u);
}

TEST(Search, TheOriginalStaysWithoutAWinAndShortOfTheMargin) {
  for (double factor : {1.5, 0.9}) {
    ToySpace space({"a", "b"}, 2);
    ToyEvaluator evaluator([&](const Settings &s) { return s.empty() ? 1.0 : factor; });
    SearchSettings settings = budget(10);
    settings.margin = 1.3;
    SearchResult result = run(space, evaluator, settings);
    EXPECT_FALSE(result.improved);
    EXPECT_TRUE(result.best.recipe.empty());
    EXPECT_EQ(result.notes.size(), factor < 1 ? 1u : 0u);
  }
}

TEST(Search, ABrokenGuardrailNeverWins) {
  ToySpace space({"a", "b"}, 2);
  ToyEvaluator evaluator([](const Settings &s) { return valueOf(s, "a") ? 0.1 : valueOf(s, "b") ? 0.5 : 1; });
  evaluator.guard = [](const Settings &s) { return valueOf(s, "a") != 0; };
  SearchResult result = run(space, evaluator, budget(50));
  EXPECT_NEAR(result.best.measurement.time.seconds, 0.5, 1e-9);
  for (const Candidate &candidate : result.top)
    EXPECT_TRUE(candidate.measurement.guardrails.empty());
}

TEST(Search, TheTopIsSortedAndShort) {
  ToySpace space({"a", "b", "c", "d", "e"}, 5);
  ToyEvaluator evaluator(valley);
  SearchSettings settings = budget(60);
  settings.top = 4;
  SearchResult result = run(space, evaluator, settings);
  ASSERT_EQ(result.top.size(), 4u);
  for (size_t i = 1; i < result.top.size(); ++i)
    EXPECT_LE(result.top[i - 1].measurement.time.seconds, result.top[i].measurement.time.seconds);
  EXPECT_EQ(result.top[0].key, result.best.key);
}

TEST(Search, StopsAtTheRoofline) {
  struct AtRoof : ToyEvaluator {
    using ToyEvaluator::ToyEvaluator;
    Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
      Measurement m = ToyEvaluator::evaluate(variant, fidelity);
      m.counters["roofline"] = m.time.seconds < 0.75 ? 0.95 : 0.5;
      return m;
    }
  };
  ToySpace space({"a", "b", "c", "d", "e"}, 5);
  AtRoof evaluator(valley);
  SearchResult result = run(space, evaluator, budget(500));
  EXPECT_EQ(result.stop, StopReason::Roofline);
  EXPECT_LT(result.statistics.evaluations, 100u);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("95 % of the roofline"), std::string::npos) << result.notes[0];
}

namespace {
struct MapMemory : EvaluationCache {
  std::optional<Measurement> recall(const std::string &key, Fidelity fidelity) override {
    auto it = known.find({key, fidelity});
    return it == known.end() ? std::nullopt : std::optional(it->second);
  }
  void remember(const std::string &key, Fidelity fidelity, const Recipe &, const Measurement &m) override {
    known[{key, fidelity}] = m;
  }
  std::map<std::pair<std::string, Fidelity>, Measurement> known;
};
} // namespace

TEST(Search, AMemoryMakesTheSecondRunFreeAndEqual) {
  MapMemory memory;
  Recorder first, second;
  ToySpace space(plantedNames, 3);
  ToyEvaluator evaluator(planted);
  run(space, evaluator, budget(60), &first, &memory);
  size_t before = evaluator.calls.size();
  SearchResult again = run(space, evaluator, budget(60), &second, &memory);
  EXPECT_EQ(evaluator.calls.size(), before);
  for (const auto &[key, count] : evaluator.calls)
    EXPECT_EQ(count, 1u);
  EXPECT_EQ(first.trajectory, second.trajectory);
  EXPECT_EQ(again.statistics.recalled, 60u);
}

TEST(Search, AFailingProposerIsNotedAndSurvived) {
  ToySpace space({"a", "b"}, 2);
  ToyEvaluator evaluator(valley);
  ToyProposer proposer;
  proposer.fail = true;
  SearchResult result = run(space, evaluator, budget(20), nullptr, nullptr, &proposer);
  EXPECT_GT(result.statistics.evaluations, 0u);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes[0].find("no model answers"), std::string::npos);
}

TEST(Search, ABaselineThatFailsIsAnError) {
  ToySpace space({"a"}, 1);
  ToyEvaluator evaluator(valley);
  evaluator.fails = [](const Settings &) { return true; };
  ToyProposer proposer;
  auto result = runSearch(space, proposer, evaluator, budget(5));
  ASSERT_FALSE(bool(result));
  EXPECT_NE(llvm::toString(result.takeError()).find("made to fail"), std::string::npos);
}

TEST(Search, RecipesOfTheProposerAreEvaluatedFirstAlsoWhereNoStateListsThem) {
  ToySpace space({"a", "b"}, 2);
  ToyEvaluator evaluator([](const Settings &s) { return s.count("z") ? 0.5 : 1.0; });
  ToyProposer proposer;
  proposer.wanted = {{{"z", "k", {{"v", "7"}}}}, {{"a", "k", {{"v", "2"}}}, {"b", "k", {{"v", "1"}}}}};
  Recorder recorder;
  SearchResult result = run(space, evaluator, budget(5), &recorder, nullptr, &proposer);
  EXPECT_EQ(recorder.trajectory[1], "1 z[k]{v=7} correct improved");
  EXPECT_EQ(recorder.trajectory[2], "2 a[k]{v=2};b[k]{v=1} correct");
  EXPECT_EQ(recipeText(result.best.recipe).substr(0, 2), "z[");
  EXPECT_EQ(result.statistics.evaluations, 5u); // the search goes on from there
}

TEST(Search, TheProposerIsToldOfEveryEvaluationAndOfWhatDoesNotApply) {
  ToySpace space({"a", "b"}, 1);
  space.refuse = [](const Action &action) { return action.transform == "z"; };
  ToyEvaluator evaluator([](const Settings &s) { return 1.0; });
  evaluator.fails = [](const Settings &s) { return s.count("b") > 0; };
  ToyProposer proposer;
  proposer.wanted = {{{"z", "k", {{"v", "7"}}}}, {{"b", "k", {{"v", "1"}}}}};
  Recorder recorder;
  run(space, evaluator, budget(3), &recorder, nullptr, &proposer);
  ASSERT_GE(proposer.told.size(), 3u);
  EXPECT_EQ(proposer.told[0], " correct");
  EXPECT_EQ(proposer.told[1], "z[k]{v=7} refused");
  EXPECT_NE(std::find(proposer.told.begin(), proposer.told.end(), "b[k]{v=1} wrong-result"), proposer.told.end());
}
