//===- ToySearch.h - made-up action spaces ----------------------*- C++ -*-===//
//
// A variant is a text, transforms edit it, and a function of the text is its time.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_UNITTESTS_SEARCH_TOYSEARCH_H
#define OPTIML_UNITTESTS_SEARCH_TOYSEARCH_H

#include "optiml/Search/Search.h"
#include "optiml/Support/Error.h"
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace optiml {

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
    if (!settings.empty())
      variant->rewrites.emplace_back().original = "k", variant->rewrites.back().twin = "k_optiml";
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

inline SearchSettings budget(unsigned evaluations) {
  SearchSettings settings;
  settings.evaluations = evaluations;
  settings.seconds = 0;
  return settings;
}

inline SearchResult run(ToySpace &space, ToyEvaluator &evaluator, const SearchSettings &settings,
                        Recorder *recorder = nullptr, EvaluationCache *memory = nullptr, ToyProposer *given = nullptr) {
  ToyProposer plain;
  return llvm::cantFail(runSearch(space, given ? *given : plain, evaluator, settings, memory, recorder));
}

inline int valueOf(const Settings &settings, const char *name) {
  auto it = settings.find(name);
  return it == settings.end() ? 0 : std::stoi(it->second);
}

/// Ten switches; only a, b and c with the right values together pay, each alone costs.
inline double planted(const Settings &s) {
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

inline const std::vector<std::string> plantedNames = {"g", "a", "f", "b", "e", "c", "d"};

/// A smooth valley: every switch has one good value.
inline double valley(const Settings &s) {
  double time = 1;
  int i = 0;
  for (const char *name : {"a", "b", "c", "d", "e"}) {
    int v = valueOf(s, name);
    time *= v == 0 ? 1 : v == 1 + (i * 3) % 5 ? 0.7 : 1.1;
    ++i;
  }
  return time;
}

} // namespace optiml

#endif
