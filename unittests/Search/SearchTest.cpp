//===- SearchTest.cpp - how the search behaves ----------------------------===//
//
// On made-up action spaces: a variant is a text, transforms edit it, and a function of the text is its time. Every test
// states one promise of Search.h.
//
//===----------------------------------------------------------------------===//
#include "optiml/Search/Search.h"
#include "optiml/Support/Error.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

using namespace optiml;

namespace {

/// A variant is a set of switches "a=3", one per transform and site; equal sets are equal variants.
using Settings = std::map<std::string, std::string>;

class ToySpace : public ActionSpace {
public:
  /// Names of switches; each can be set once, to one of `values` values.
  ToySpace(std::vector<std::string> names, int values) : names(std::move(names)), values(values) {}

  llvm::Expected<SearchState> root() override { return stateOf({}); }

  llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) override {
    {
      std::lock_guard lock(mutex);
      ++applications;
    }
    if (refuse && refuse(action))
      return notApplicable("{0} does not fit", action.str());
    Settings settings = settingsOf(*state.variant);
    settings[action.transform] = action.params.at("v");
    return stateOf(settings);
  }

  static Settings settingsOf(const Variant &variant) {
    Settings settings;
    for (const Action &action : variant.recipe)
      settings[action.transform] = action.params.at("v");
    return settings;
  }

  std::function<bool(const Action &)> refuse;
  unsigned applications = 0;

private:
  SearchState stateOf(const Settings &settings) {
    SearchState state;
    auto variant = std::make_shared<Variant>();
    for (const auto &[name, value] : settings) {
      variant->recipe.push_back({name, "k", {{"v", value}}});
      state.key += name + value + ";";
    }
    variant->text = state.key;
    state.variant = variant;
    for (const std::string &name : names) {
      if (settings.count(name))
        continue;
      ActionTemplate legal{name, "k", {}};
      for (int v = 1; v <= values; ++v)
        legal.values.push_back({{"v", std::to_string(v)}});
      state.legal.push_back(legal);
    }
    return state;
  }

  std::vector<std::string> names;
  int values;
  std::mutex mutex;
};

class ToyEvaluator : public Evaluator {
public:
  explicit ToyEvaluator(std::function<double(const Settings &)> seconds) : seconds(std::move(seconds)) {}

  Measurement evaluate(const Variant &variant, Fidelity fidelity) override {
    if (delay.count())
      std::this_thread::sleep_for(delay);
    {
      std::lock_guard lock(mutex);
      ++calls[{variant.text, fidelity}];
    }
    Measurement m;
    Settings settings = ToySpace::settingsOf(variant);
    if (fails && fails(settings)) {
      m.verdict = Verdict::WrongResult;
      m.why = "made to fail";
      return m;
    }
    m.verdict = fidelity == Fidelity::Model ? Verdict::Predicted : Verdict::Correct;
    m.time.baseline = seconds({});
    m.time.seconds = seconds(settings);
    m.reward = std::log2(m.time.baseline / m.time.seconds);
    if (guard && guard(settings))
      m.guardrails.push_back("guard");
    if (fidelity == Fidelity::Verified && afterVerified)
      afterVerified();
    return m;
  }

  unsigned count(Fidelity fidelity) const {
    unsigned sum = 0;
    for (const auto &[key, n] : calls)
      if (key.second == fidelity)
        sum += n;
    return sum;
  }

  std::function<double(const Settings &)> seconds;
  std::function<bool(const Settings &)> fails, guard;
  std::function<void()> afterVerified;
  std::chrono::milliseconds delay{0};
  std::map<std::pair<std::string, Fidelity>, unsigned> calls;
  std::mutex mutex;
};

/// Equal priors, or those given by transform name.
class ToyProposer : public Proposer {
public:
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &state, unsigned count) override {
    if (fail)
      return makeError("no model answers");
    std::vector<Proposal> result;
    for (const ActionTemplate &legal : state.legal) {
      auto it = priors.find(legal.transform);
      if (it != priors.end())
        result.push_back({{legal.transform, legal.site, legal.values[0]}, it->second, "toy"});
    }
    return result;
  }
  std::vector<OpeningLine> openingBook(const SearchState &) override { return book; }
  std::vector<Recipe> recipes() override { return std::exchange(wanted, {}); }
  void observe(const SearchState &state, const Measurement &measurement) override {
    told.push_back(recipeText(state.variant->recipe) + " " + verdictName(measurement.verdict));
  }
  void refused(const Recipe &recipe, const std::string &why) override {
    told.push_back(recipeText(recipe) + " refused");
  }
  std::vector<Recipe> wanted;
  std::vector<std::string> told;
  std::map<std::string, double> priors;
  std::vector<OpeningLine> book;
  bool fail = false;
};

struct Recorder : SearchObserver {
  void evaluated(const EvaluationRecord &record) override {
    trajectory.push_back(std::to_string(record.number) + " " + recipeText(record.recipe) + " " +
                         verdictName(record.measurement.verdict) + (record.improved ? " improved" : ""));
    if (record.number)
      keys.push_back(record.key);
  }
  void refused(const Recipe &recipe, const std::string &why) override { refusals.push_back(why); }
  std::vector<std::string> trajectory, keys, refusals;
};

SearchSettings budget(unsigned evaluations) {
  SearchSettings settings;
  settings.evaluations = evaluations;
  settings.seconds = 0;
  return settings;
}

SearchResult run(ToySpace &space, ToyEvaluator &evaluator, const SearchSettings &settings, Recorder *recorder = nullptr,
                 EvaluationMemory *memory = nullptr, ToyProposer *given = nullptr) {
  ToyProposer plain;
  return llvm::cantFail(runSearch(space, given ? *given : plain, evaluator, settings, memory, recorder));
}

int valueOf(const Settings &settings, const char *name) {
  auto it = settings.find(name);
  return it == settings.end() ? 0 : std::stoi(it->second);
}

/// Ten switches; only a, b and c with the right values together pay, each alone costs.
double planted(const Settings &s) {
  double time = 1;
  int right = (valueOf(s, "a") == 2) + (valueOf(s, "b") == 2) + (valueOf(s, "c") == 1);
  if (right == 3)
    time = 0.1;
  else
    time += 0.2 * (valueOf(s, "a") != 0) + 0.2 * (valueOf(s, "b") != 0) + 0.2 * (valueOf(s, "c") != 0);
  for (const char *name : {"d", "e", "f", "g"})
    time *= valueOf(s, name) ? 1.05 : 1;
  return time;
}

const std::vector<std::string> plantedNames = {"g", "a", "f", "b", "e", "c", "d"};

/// A smooth valley: every switch has one good value.
double valley(const Settings &s) {
  double time = 1;
  int i = 0;
  for (const char *name : {"a", "b", "c", "d", "e"}) {
    int v = valueOf(s, name);
    time *= v == 0 ? 1 : v == 1 + (i * 3) % 5 ? 0.7 : 1.1;
    ++i;
  }
  return time;
}

} // namespace

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
struct MapMemory : EvaluationMemory {
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
/// Two kernels; each has one good switch. Sites are "k1/i:A" and so on.
struct TwoKernels : ActionSpace {
  llvm::Expected<SearchState> root() override { return stateOf({}); }
  llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) override {
    Recipe recipe = state.variant->recipe;
    recipe.push_back(action);
    return stateOf(recipe);
  }
  static SearchState stateOf(const Recipe &recipe) {
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
