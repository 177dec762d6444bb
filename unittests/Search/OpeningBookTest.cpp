//===- OpeningBookTest.cpp - how known lines are played -------------------===//
//
// On the made-up action spaces of ToySearch.h.
//
//===----------------------------------------------------------------------===//
#include "ToySearch.h"
#include "gtest/gtest.h"

using namespace optiml;

TEST(OpeningBook, IsPlayedFirstWithItsPreferences) {
  ToySpace space(plantedNames, 3);
  ToyEvaluator evaluator(planted);
  ToyProposer proposer;
  OpeningLine line{"the plant", {}};
  line.steps.push_back({"a", "*", {{{"v", "9"}}, {{"v", "2"}}}});
  line.steps.push_back({"missing", "*", {}});
  line.steps.push_back({"d", "*", {{{"v", "9"}}}, false, false, /*onlyPreferred=*/true});
  line.steps.push_back({"b", "*", {{{"v", "2"}}}});
  line.steps.push_back({"c", "*", {}});
  OpeningLine impossible{"impossible", {{"a", "*", {}}, {"missing", "*", {}, /*required=*/true}}};
  proposer.book = {impossible, line};
  Recorder recorder;
  SearchResult result = run(space, evaluator, budget(1), &recorder, nullptr, &proposer);
  ASSERT_EQ(recorder.trajectory.size(), 2u);
  EXPECT_EQ(recorder.trajectory[1], "1 a[k]{v=2};b[k]{v=2};c[k]{v=1} correct improved");
}

namespace {
/// A variant is what its recipe says.
struct RecipeSpace : ActionSpace {
  llvm::Expected<SearchState> root() override { return stateOf({}); }
  llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) override {
    Recipe recipe = state.variant->recipe;
    recipe.push_back(action);
    return stateOf(recipe);
  }
  virtual SearchState stateOf(const Recipe &recipe) const = 0;
};
/// Two kernels; each has one good switch. Sites are "k1/i:A" and so on.
struct TwoKernels : RecipeSpace {
  SearchState stateOf(const Recipe &recipe) const override {
    std::set<std::string> done;
    for (const Action &action : recipe)
      done.insert(action.str());
    SearchState state;
    auto variant = std::make_shared<Variant>();
    variant->recipe = recipe;
    for (const std::string &text : done)
      variant->text += text + ";";
    state.key = variant->text;
    state.variant = variant;
    for (const char *site : {"k1/i:A", "k1/i:B", "n::k2<int>/i:A"})
      if (!done.count(Action{"stage", site, {}}.str()))
        state.legal.push_back({"stage", site, {{}}});
    return state;
  }
};
struct StageEvaluator : Evaluator {
  Measurement evaluate(const Variant &variant, Fidelity) override {
    Measurement m;
    m.verdict = Verdict::Correct;
    m.time.baseline = 1;
    m.time.seconds = 1 - 0.2 * variant.recipe.size();
    m.reward = -std::log2(m.time.seconds);
    return m;
  }
};
} // namespace

TEST(OpeningBook, RunsOnEveryKernelAndThenOnAllTogether) {
  TwoKernels space;
  StageEvaluator evaluator;
  ToyProposer proposer;
  OpeningLine line{"stage all", {{"stage", "/*:?", {}, false, /*everySite=*/true}}};
  proposer.book = {line};
  Recorder recorder;
  SearchSettings settings = budget(3);
  settings.screen = 0;
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 4u);
  EXPECT_EQ(recorder.trajectory[1], "1 stage[k1/i:A];stage[k1/i:B] correct improved");
  EXPECT_EQ(recorder.trajectory[2], "2 stage[n::k2<int>/i:A] correct");
  EXPECT_EQ(recorder.trajectory[3], "3 stage[k1/i:A];stage[k1/i:B];stage[n::k2<int>/i:A] correct improved");
}

// A limit for all of them would cut off what the last ones gain.
TEST(OpeningBook, EachKernelHasItsShareOfTheLongestRecipe) {
  TwoKernels space;
  StageEvaluator evaluator;
  ToyProposer proposer;
  proposer.book = {{"stage all", {{"stage", "/*:?", {}, false, /*everySite=*/true}}}};
  Recorder recorder;
  SearchSettings settings = budget(3);
  settings.screen = 0;
  settings.maxDepth = 2;
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 4u);
  EXPECT_EQ(recorder.trajectory[3], "3 stage[k1/i:A];stage[k1/i:B];stage[n::k2<int>/i:A] correct improved");
}

TEST(OpeningBook, TheBestOfAllKernelsAreCombinedOnceEachHadItsTurn) {
  TwoKernels space;
  StageEvaluator evaluator;
  ToyProposer proposer;
  proposer.book = {{"both", {{"stage", "/*:?", {}, false, /*everySite=*/true}}}, {"one", {{"stage", "/*:B"}}}};
  Recorder recorder;
  SearchSettings settings = budget(4);
  settings.screen = 0;
  settings.batch = 1;
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 5u);
  EXPECT_EQ(recorder.trajectory[3], "3 stage[k1/i:A];stage[k1/i:B];stage[n::k2<int>/i:A] correct improved");
  EXPECT_EQ(recorder.trajectory[4], "4 stage[k1/i:B] correct");
}

TEST(OpeningBook, WhatDidBestOnAKernelIsTakenFromAnyVariant) {
  TwoKernels space;
  struct : Evaluator {
    Measurement evaluate(const Variant &variant, Fidelity) override {
      Measurement m;
      m.verdict = Verdict::Correct;
      double k1 = 0.5, k2 = 0.5;
      for (const Action &action : variant.recipe)
        if (action.site == "k1/i:A")
          k1 = 0.4;
        else if (action.site == "k1/i:B")
          k1 = 0.1;
        else
          k2 = 0.2;
      m.time = {k1 + k2, 1, false, {k1, k2}};
      m.reward = -std::log2(m.time.seconds);
      return m;
    }
  } evaluator;
  ToyProposer proposer;
  Recorder recorder;
  SearchSettings settings = budget(3);
  settings.launches = {{"k1", {{0, 1.0}}}, {"n::k2<int>", {{1, 1.0}}}};
  settings.first = {{{"stage", "k1/i:A", {}}, {"stage", "n::k2<int>/i:A", {}}}, {{"stage", "k1/i:B", {}}}};
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 4u);
  EXPECT_EQ(recorder.trajectory[3], "3 stage[k1/i:B];stage[n::k2<int>/i:A] correct improved");
}

TEST(OpeningBook, AKernelThatWasAlmostNothingCountsOnceTheOthersAreFast) {
  TwoKernels space;
  struct : Evaluator {
    Measurement evaluate(const Variant &variant, Fidelity) override {
      Measurement m;
      m.verdict = Verdict::Correct;
      double k1 = 0.99, k2 = 0.01;
      for (const Action &action : variant.recipe)
        (action.site[0] == 'k' ? k1 : k2) = action.site[0] == 'k' ? 0.02 : 0.001;
      m.time = {k1 + k2, 1, false, {k1, k2}};
      m.reward = -std::log2(m.time.seconds);
      return m;
    }
  } evaluator;
  ToyProposer proposer;
  proposer.book = {{"one", {{"stage", "/*:A"}}}};
  Recorder recorder;
  SearchSettings settings = budget(3);
  settings.screen = 0;
  settings.launches = {{"k1", {{0, 1.0}}}, {"n::k2<int>", {{1, 1.0}}}};
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 4u);
  EXPECT_EQ(recorder.trajectory[3], "3 stage[k1/i:A];stage[n::k2<int>/i:A] correct improved");
}

TEST(OpeningBook, WhereTheWholeIsWrongWhatIsProvenIsCombined) {
  TwoKernels space;
  struct : StageEvaluator {
    /// Only the shorter lines are verified, and the longest is wrong.
    Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
      Measurement m = StageEvaluator::evaluate(variant, fidelity);
      if (variant.recipe.size() == 2 && variant.recipe[1].site == "k1/i:B")
        m.verdict = Verdict::Predicted;
      if (variant.recipe.size() == 3)
        m.verdict = Verdict::WrongResult;
      return m;
    }
  } evaluator;
  ToyProposer proposer;
  proposer.book = {{"both", {{"stage", "/*:?", {}, false, /*everySite=*/true}}}, {"one", {{"stage", "/*:B"}}}};
  Recorder recorder;
  SearchSettings settings = budget(5);
  settings.screen = 0;
  settings.batch = 1;
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 6u);
  EXPECT_NE(recorder.trajectory[3].find("wrong-result"), std::string::npos) << recorder.trajectory[3];
  EXPECT_EQ(recorder.trajectory[5], "5 stage[k1/i:B];stage[n::k2<int>/i:A] correct improved");
}

TEST(OpeningBook, WhatIsWrongWithAStepThatRoundsOtherwiseIsTriedWithoutIt) {
  ToySpace space({"r", "a", "b", "c"}, 1);
  ToyEvaluator evaluator([](const Settings &s) { return 9 - double(s.size()); });
  evaluator.fails = [](const Settings &s) { return s.count("r") > 0; };
  ToyProposer proposer;
  OpeningStep rounds{"r", "*", {}};
  rounds.inexact = true;
  for (const char *name : {"a", "b", "c"})
    proposer.book.push_back({name, {rounds, {name, "*", {}, /*required=*/true}}});
  Recorder recorder;
  SearchSettings settings = budget(4);
  settings.batch = 1;
  run(space, evaluator, settings, &recorder, nullptr, &proposer);
  ASSERT_EQ(recorder.trajectory.size(), 5u);
  EXPECT_EQ(recorder.trajectory[1], "1 r[k]{v=1};a[k]{v=1} wrong-result");
  // Beside the next line, which was walked before anything was known of the step.
  EXPECT_EQ(recorder.trajectory[2], "2 r[k]{v=1};b[k]{v=1} wrong-result");
  EXPECT_EQ(recorder.trajectory[3], "3 a[k]{v=1} correct improved");
  EXPECT_EQ(recorder.trajectory[4], "4 c[k]{v=1} correct");
}

TEST(OpeningBook, AStepThatRoundsOtherwiseStaysWhereItIsNotTheFault) {
  ToySpace space({"r", "a", "b"}, 1);
  ToyEvaluator evaluator([](const Settings &s) { return 9 - double(s.size()); });
  evaluator.fails = [](const Settings &s) { return s.count("a") > 0; };
  ToyProposer proposer;
  OpeningStep rounds{"r", "*", {}};
  rounds.inexact = true;
  for (const char *name : {"a", "b"})
    proposer.book.push_back({name, {rounds, {name, "*", {}, /*required=*/true}}});
  Recorder recorder;
  SearchSettings settings = budget(3);
  settings.batch = 1;
  run(space, evaluator, settings, &recorder, nullptr, &proposer);
  ASSERT_EQ(recorder.trajectory.size(), 4u);
  EXPECT_EQ(recorder.trajectory[2], "2 r[k]{v=1};b[k]{v=1} correct improved");
  EXPECT_EQ(recorder.trajectory[3], "3 a[k]{v=1} wrong-result");
}

namespace {
/// One kernel with a large and a small launch; "wide" is for the large one.
struct TwoSizes : RecipeSpace {
  SearchState stateOf(const Recipe &recipe) const override {
    SearchState state;
    auto variant = std::make_shared<Variant>();
    variant->recipe = recipe;
    state.key = variant->text = recipeText(recipe);
    state.variant = variant;
    if (recipe.empty())
      state.legal.push_back({"wide", "k", {{}}});
    if (recipe.size() == 1)
      state.legal.push_back({"large-launches", "k:n", {{{"least", "4096"}}}});
    return state;
  }
};
struct SizesEvaluator : Evaluator {
  Measurement evaluate(const Variant &variant, Fidelity) override {
    const size_t steps = variant.recipe.size();
    Measurement m;
    m.verdict = Verdict::Correct;
    m.time.perLaunch = {steps > 0 ? 0.2 : 1.0, steps == 1 ? 0.7 : 0.5};
    m.time.seconds = m.time.perLaunch[0] + m.time.perLaunch[1];
    m.time.baseline = 1.5;
    m.reward = std::log2(m.time.baseline / m.time.seconds);
    if (steps == 1)
      m.guardrails.push_back("launch 2 became 1.40 times slower");
    return m;
  }
};
} // namespace

TEST(OpeningBook, WhatSlowsASmallLaunchIsTriedForLargeOnes) {
  TwoSizes space;
  SizesEvaluator evaluator;
  ToyProposer proposer;
  proposer.book = {{"wide", {{"wide", "*", {}, /*required=*/true}}}};
  Recorder recorder;
  SearchSettings settings = budget(2);
  settings.launches = {{"k", {{0, 1.0}, {1, 1.0}}}};
  settings.screen = 0;
  llvm::cantFail(runSearch(space, proposer, evaluator, settings, nullptr, &recorder));
  ASSERT_EQ(recorder.trajectory.size(), 3u);
  EXPECT_EQ(recorder.trajectory[1], "1 wide[k] correct");
  EXPECT_EQ(recorder.trajectory[2], "2 wide[k];large-launches[k:n]{least=4096} correct improved");
}

namespace {
/// Knows what each switch alone costs, and that v=2 is better than v=1.
struct Costs : Outlook {
  std::map<std::string, double> known;
  bool tunes = false, varies = false;
  bool knowsAnything() const override { return !known.empty(); }
  std::vector<size_t> choose(const std::vector<Prospect> &prospects, size_t most) const override {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < prospects.size(); ++i)
      if (double cost = known.at(prospects[i].recipe[0].transform); cost < 2)
        order.emplace_back(cost - (prospects[i].recipe != prospects[i].basis ? 0.01 : 0), i);
    std::sort(order.begin(), order.end());
    std::vector<size_t> chosen;
    for (const auto &[cost, i] : order)
      if (chosen.size() < most)
        chosen.push_back(i);
    return chosen;
  }
  static Recipe second(const SearchState &end) {
    Recipe recipe = end.variant->recipe;
    recipe[0].params["v"] = "2";
    return recipe;
  }
  Recipe tuned(const SearchState &end) const override { return tunes ? second(end) : end.variant->recipe; }
  std::vector<Recipe> variations(const SearchState &end) const override {
    return varies ? std::vector<Recipe>{second(end)} : std::vector<Recipe>();
  }
};

/// The first evaluations of a search with a book of four lines, in which each switch makes it faster.
std::vector<std::string> openingWith(const Costs &outlook, unsigned evaluations) {
  ToySpace space({"a", "b", "c", "d"}, 2);
  ToyEvaluator evaluator([](const Settings &s) { return s.empty() ? 8 : s.begin()->first == "c" ? 3 : 4; });
  ToyProposer proposer;
  for (const char *name : {"a", "b", "c", "d"})
    proposer.book.push_back({name, {{name, "*", {{{"v", "1"}}}}}});
  Recorder recorder;
  SearchSettings settings = budget(evaluations);
  settings.outlook = &outlook;
  run(space, evaluator, settings, &recorder, nullptr, &proposer);
  std::vector<std::string> order;
  for (const std::string &entry : recorder.trajectory)
    if (entry[0] != '0' && entry.find(';') == std::string::npos)
      order.push_back(entry.substr(2, 1) + entry.substr(entry.find('=') + 1, 1));
  return order;
}
} // namespace

TEST(OpeningBook, WhatPromisesMostIsTriedFirstAndWhatIsHopelessNotAtAll) {
  using Order = std::vector<std::string>;
  Costs outlook;
  EXPECT_EQ(openingWith(outlook, 4), (Order{"a1", "b1", "c1", "d1"})) << "nothing is known: as the book has it";
  outlook.known = {{"a", 1}, {"b", 9}, {"c", 0}, {"d", 0.5}};
  EXPECT_EQ(openingWith(outlook, 3), (Order{"c1", "d1", "a1"})) << "and b is no opening";
  outlook.known["b"] = 0.9;
  EXPECT_EQ(openingWith(outlook, 4), (Order{"c1", "d1", "b1", "a1"}));
}

TEST(OpeningBook, LinesAreTunedAndTheBestIsVaried) {
  using Order = std::vector<std::string>;
  Costs outlook;
  outlook.known = {{"a", 1}, {"b", 9}, {"c", 0}, {"d", 0.5}};
  outlook.tunes = true;
  EXPECT_EQ(openingWith(outlook, 4), (Order{"c2", "c1", "d2", "d1"}));
  outlook.tunes = false;
  outlook.varies = true;
  EXPECT_EQ(openingWith(outlook, 3), (Order{"c1", "c2", "d1"}));
}

TEST(OpeningBook, AStepPrefersASiteOfItsShape) {
  auto firstOf = [](const char *glob) {
    struct Places : TwoKernels {
      llvm::Expected<SearchState> root() override {
        SearchState state = stateOf({});
        state.legal = {{"stage", "k1/i:A+B", {{}}}, {"stage", "k1/i:A", {{}}}};
        return state;
      }
    } space;
    StageEvaluator evaluator;
    ToyProposer proposer;
    proposer.book = {{"one", {{"stage", glob}}}};
    Recorder recorder;
    llvm::cantFail(runSearch(space, proposer, evaluator, budget(1), nullptr, &recorder));
    return recorder.trajectory.at(1);
  };
  EXPECT_EQ(firstOf("/*:*"), "1 stage[k1/i:A] correct improved");
  EXPECT_EQ(firstOf("/*:*+*"), "1 stage[k1/i:A+B] correct improved");
  EXPECT_EQ(firstOf("*"), "1 stage[k1/i:A+B] correct improved");
}

TEST(OpeningBook, SitesNameTheirKernel) {
  EXPECT_EQ(siteKernel("sgemm"), "sgemm");
  EXPECT_EQ(siteKernel("sgemm/k:A"), "sgemm");
  EXPECT_EQ(siteKernel("sgemm:A"), "sgemm");
  EXPECT_EQ(siteKernel("ns::scale<a::b>"), "ns::scale<a::b>");
  EXPECT_EQ(siteKernel("ns::scale:A"), "ns::scale");
}

TEST(OpeningBook, EveryIdeaHasItsTurnBeforeMoreOfTheSame) {
  ToySpace space({"a", "b"}, 9);
  ToyEvaluator evaluator([](const Settings &s) { return s.empty() ? 1.0 : 2.0; });
  ToyProposer proposer;
  for (const char *v : {"1", "2", "3", "4", "5"})
    proposer.book.push_back({std::string("a") + v, {{"a", "*", {{{"v", v}}}, /*required=*/true}}});
  proposer.book.push_back({"b1", {{"b", "*", {{{"v", "1"}}}, /*required=*/true}}});
  Recorder recorder;
  run(space, evaluator, budget(6), &recorder, nullptr, &proposer);
  EXPECT_EQ(recorder.keys, (std::vector<std::string>{"a1;", "a2;", "a3;", "b1;", "a4;", "a5;"}));
}

TEST(OpeningBook, LeavesOutWhatKeptALineFromBeingTested) {
  // The line has 0.3 of the original's time, as it has without "b"; but with "b" some of its code never runs.
  struct Hasty : ToyEvaluator {
    using ToyEvaluator::ToyEvaluator;
    Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
      Measurement m = ToyEvaluator::evaluate(variant, fidelity);
      if (m.provisional = valueOf(ToySpace::settingsOf(variant), "b") != 0; m.provisional)
        missed.insert(variant.text);
      return m;
    }
    std::map<std::string, Measurement> withdrawn() override {
      std::map<std::string, Measurement> result;
      for (const std::string &key : std::exchange(missed, {})) {
        result[key].verdict = Verdict::Untested;
        result[key].missedKernels = {"k_optiml"};
      }
      return result;
    }
    std::set<std::string> missed;
  };
  ToySpace space({"a", "b", "c", "d"}, 2);
  Hasty evaluator([](const Settings &s) {
    return valueOf(s, "a") && valueOf(s, "c") ? 0.3 : 1 + 0.1 * (valueOf(s, "a") + valueOf(s, "c"));
  });
  ToyProposer proposer;
  OpeningLine line{"a, b, c", {}};
  for (const char *name : {"a", "b", "c"})
    line.steps.push_back({name, "*", {{{"v", "2"}}}});
  proposer.book = {line};
  Recorder recorder;
  SearchResult result = run(space, evaluator, budget(4), &recorder, nullptr, &proposer);
  EXPECT_EQ(recipeText(result.best.recipe), "a[k]{v=2};c[k]{v=2}");
  ASSERT_EQ(recorder.trajectory.size(), 5u);
  EXPECT_EQ(recorder.trajectory[1], "1 a[k]{v=2};b[k]{v=2};c[k]{v=2} correct improved");
  EXPECT_EQ(recorder.trajectory[3], "3 a[k]{v=2};c[k]{v=2} correct improved");
}
