//===- Explore.cpp - arguments that lead to code -----------------------------===//
#include "Explore.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <bit>
#include <cmath>

using namespace optiml;

// A program with larger sizes runs for minutes in the emulator.
static constexpr int64_t largest = 1 << 27, smallest = -2;

std::optional<int64_t> optiml::integerIn(const std::string &argument) {
  int64_t value;
  if (llvm::StringRef(argument).getAsInteger(10, value))
    return std::nullopt;
  return value;
}

// How much it matters that a run showed something: code that must have run, another outcome of a condition, the edge of
// one.
static constexpr unsigned mustRun = 16, otherOutcome = 4, edgeOfOutcome = 1;

static uint64_t conditionFeature(uint32_t condition, bool outcome, unsigned aim) {
  return uint64_t(condition) << 3 | uint64_t(outcome) << 2 | aim;
}
static uint64_t kernelFeature(const std::string &symbol) { return uint64_t(1) << 62 | llvm::xxh3_64bits(symbol) >> 2; }
static uint64_t codeFeature(uint32_t code) { return uint64_t(1) << 61 | code; }
static uint64_t siteFeature(uint64_t place) { return uint64_t(1) << 60 | place >> 4; }

/// More blocks than a launch may have matter where programs have such sizes: a row a block, or an image of each
/// channel. That so many tiles, or planes of one volume, are no longer one launch is no mistake.
static int64_t mostFor(const ConditionState &condition, const ConditionSide &side) {
  constexpr unsigned z = 2;
  return condition.limitedAxis == 0 ? largest : condition.limitedAxis == z ? side.right / 2 : 2 * side.right;
}

static bool isBeyond(const ConditionState &condition, const ConditionSide &side, const Arguments &arguments) {
  const int64_t most = mostFor(condition, side);
  return llvm::any_of(arguments, [&](const std::string &a) { return integerIn(a).value_or(0) > most; });
}

llvm::Expected<const ArgumentExplorer::Run *> ArgumentExplorer::tryOut(const Arguments &arguments) {
  auto [entry, fresh] = tried.try_emplace(arguments, all.size());
  auto tellsMore = [&](const Run &run) {
    bool better = run.usable ? run.hostOnly && !how.hostOnly : run.cutAfter > 0;
    return better && run.cutAfter < how.seconds;
  };
  if (!fresh && !tellsMore(*all[entry->second]))
    return all[entry->second].get();
  if (fresh)
    all.push_back(std::make_unique<Run>());
  const size_t number = entry->second;
  Run &run = *all[number];
  run.arguments = arguments;
  llvm::Expected<ProbeResult> result = probe(arguments, how);
  if (!result)
    return result.takeError();
  if (!result->coverage) {
    run.cutAfter = result->timedOut ? how.seconds : 0;
    return &run;
  }
  run.usable = true;
  run.hostOnly = how.hostOnly;
  run.seconds = result->seconds;
  for (auto &[id, condition] : result->coverage->conditions) {
    if (known.count(condition.functionHash))
      continue;
    for (bool outcome : {false, true}) {
      const ConditionSide &side = condition.sides[outcome];
      if (!side.seen() || (outcome && isBeyond(condition, side, arguments)))
        continue;
      seenAt.emplace(condition.place, outcome);
      firstToMeet.try_emplace(id, number);
      size_t &quick = quickest.try_emplace(id, number).first->second;
      if (run.seconds < 0.8 * all[quick]->seconds) // not for a hair's breadth
        quick = number;
      run.features.emplace(conditionFeature(id, outcome, unsigned(Aim::Outcome)), side.leads ? mustRun : otherOutcome);
      if (!condition.isFloat && side.atEdge())
        run.features.emplace(conditionFeature(id, outcome, unsigned(Aim::Edge)), edgeOfOutcome);
      if (condition.isHost && !condition.isFloat && !side.atEdge()) {
        run.features.emplace(conditionFeature(id, outcome, unsigned(Aim::Beyond)), otherOutcome);
        beyondEdge.emplace(id, outcome);
      }
      if (!condition.isHost && !condition.sides[!outcome].seen())
        run.features.emplace(conditionFeature(id, outcome, unsigned(Aim::Always)), edgeOfOutcome);
      auto [best, first] = nearest.try_emplace({id, outcome}, Nearest{number, side});
      if (!first && side.nearness > best->second.side.nearness)
        best->second = {number, side};
    }
    run.conditions.emplace(id, std::move(condition));
  }
  for (const auto &[place, site] : result->coverage->sites)
    if (site.ran && !known.count(site.functionHash))
      run.features.emplace(siteFeature(place), mustRun);
  for (const std::string &kernel : result->coverage->ran)
    run.features.emplace(kernelFeature(kernel), mustRun);
  for (auto [code, place] : result->coverage->covered)
    run.features.emplace(codeFeature(code), mustRun);
  return &run;
}

llvm::Error ArgumentExplorer::start(const Arguments &arguments, double seconds) {
  how = {seconds, false};
  return tryOut(arguments).takeError();
}

Features ArgumentExplorer::featuresOf(const Arguments &arguments) const {
  auto it = tried.find(arguments);
  return it == tried.end() ? Features() : all[it->second]->features;
}

double ArgumentExplorer::secondsOf(const Arguments &arguments) const {
  auto it = tried.find(arguments);
  if (it == tried.end())
    return 0;
  const Run &run = *all[it->second];
  return run.hostOnly ? std::numeric_limits<double>::infinity() : run.seconds;
}

const ArgumentExplorer::Nearest *ArgumentExplorer::nearestTo(const Goal &goal) const {
  auto it = nearest.find({goal.condition, goal.aim == Aim::Outcome ? !goal.outcome : goal.outcome});
  return it == nearest.end() ? nullptr : &it->second;
}

bool ArgumentExplorer::reached(const Goal &goal) const {
  auto it = nearest.find({goal.condition, goal.outcome});
  if (it == nearest.end() || goal.aim == Aim::Outcome)
    return it != nearest.end();
  return goal.aim == Aim::Edge ? it->second.side.atEdge() : beyondEdge.count({goal.condition, goal.outcome});
}

std::optional<ArgumentExplorer::Goal> ArgumentExplorer::nextGoal() const {
  std::optional<Goal> best;
  unsigned bestRank = ~0u;
  for (const auto &[key, near] : nearest) {
    const ConditionState &condition = all[near.run]->conditions.at(key.first);
    for (Goal goal : {Goal{key.first, !key.second, Aim::Outcome}, Goal{key.first, key.second, Aim::Beyond},
                      Goal{key.first, key.second, Aim::Edge}}) {
      const bool isNew = goal.aim == Aim::Outcome, leads = isNew && condition.sides[goal.outcome].leads;
      if (limits != (condition.limitedAxis != 0))
        continue;
      if (reached(goal) || (!isNew && condition.isFloat) || (how.hostOnly && !(isNew && condition.isHost)) ||
          (goal.aim == Aim::Beyond && !condition.isHost))
        continue;
      auto done = exhausted.find(goal);
      if (done != exhausted.end() && done->second == near.run)
        continue; // nothing has come nearer since
      // New outcomes first, and the host's, which decide on kernels. What was tried before comes last.
      const bool elsewhere = isNew && seenAt.count({condition.place, goal.outcome});
      unsigned rank = (done != exhausted.end()) * 32 + (goal.aim == Aim::Edge) * 16 + (goal.aim == Aim::Beyond) * 8 +
                      elsewhere * 4 + !condition.isHost * 2 + !leads;
      if (rank < bestRank)
        best = goal, bestRank = rank;
    }
  }
  return best;
}

static double valueOf(int64_t word, bool isFloat) { return isFloat ? std::bit_cast<double>(word) : double(word); }

ConditionSide ArgumentExplorer::sideOf(const Run &run, const Goal &goal) {
  auto it = run.conditions.find(goal.condition);
  if (it == run.conditions.end())
    return ConditionSide();
  const ConditionSide &wanted = it->second.sides[goal.outcome];
  return wanted.seen() ? wanted : it->second.sides[!goal.outcome];
}

std::optional<double> ArgumentExplorer::difference(const Run &run, const Goal &goal) {
  const ConditionSide side = sideOf(run, goal);
  if (!side.seen())
    return std::nullopt;
  const bool isFloat = run.conditions.at(goal.condition).isFloat;
  return valueOf(side.left, isFloat) - valueOf(side.right, isFloat);
}

llvm::Expected<std::vector<int64_t>> ArgumentExplorer::candidates(const Goal &goal, const Run &from,
                                                                  const ConditionSide &side, size_t place) {
  const int64_t given = *integerIn(from.arguments[place]);
  const ConditionState &condition = from.conditions.at(goal.condition);
  const bool isFloat = condition.isFloat;
  const int64_t most = mostFor(condition, side);
  llvm::SmallSetVector<int64_t, 16> values;
  auto add = [&](double v) {
    if (v >= double(smallest) && v <= double(most))
      values.insert(int64_t(v));
  };
  // The argument is an operand.
  if (!isFloat)
    for (auto [own, other] : {std::pair(side.left, side.right), std::pair(side.right, side.left)})
      if (own == given)
        for (int64_t off : {0, 1, -1})
          add(double(other) + double(off));
  // It decides about one: by a small step, and where that changes nothing by a large one.
  std::optional<double> here = difference(from, goal);
  for (int64_t step : {int64_t(1), std::max<int64_t>(64, given), 16 * std::max<int64_t>(64, given)}) {
    if (!here || given + step > most)
      break;
    Arguments moved = from.arguments;
    moved[place] = std::to_string(given + step);
    llvm::Expected<const Run *> run = tryOut(moved);
    if (!run)
      return run.takeError();
    if (reached(goal))
      return std::vector<int64_t>();
    std::optional<double> there = (*run)->usable ? difference(**run, goal) : std::nullopt;
    if (!there || *there == *here || !std::isfinite(*there))
      continue;
    double zero = double(given) - *here * double(step) / (*there - *here);
    for (double v : {std::floor(zero), std::ceil(zero), std::floor(zero) - 1, std::ceil(zero) + 1})
      add(v);
    if (goal.aim != Aim::Edge) // surely beyond it, also where the operand moves in steps
      for (double beyond : {1.02, 1.5})
        add(std::round(double(given) + beyond * (zero - double(given))));
    if (step == 1 && std::fabs(zero) < double(largest))
      break;
  }
  return std::vector<int64_t>(values.begin(), values.end());
}

llvm::Expected<Arguments> ArgumentExplorer::shrunk(const Goal &goal, const Run &from, size_t place) {
  Arguments result = from.arguments;
  auto meets = [&](const Arguments &arguments) -> llvm::Expected<bool> {
    llvm::Expected<const Run *> run = tryOut(arguments);
    if (!run)
      return run.takeError();
    return difference(**run, goal).has_value();
  };
  for (size_t i = 0; i < result.size(); ++i) {
    std::optional<int64_t> value = integerIn(result[i]);
    if (i == place || !value)
      continue;
    for (int64_t least = 0, most = *value; most - least > 1;) { // `most` meets the condition, `least` may not
      int64_t middle = least == 0 && most == *value ? 1 : least + (most - least) / 2;
      Arguments tried = result;
      tried[i] = std::to_string(middle);
      llvm::Expected<bool> good = meets(tried);
      if (!good)
        return good.takeError();
      if (*good)
        result = tried;
      (*good ? most : least) = middle;
    }
  }
  return result;
}

llvm::Error ArgumentExplorer::restore(const Goal &goal, const Run &from, const Arguments &moved, size_t place) {
  const int64_t before = *integerIn(from.arguments[place]), now = *integerIn(moved[place]);
  for (size_t i = 0; i < moved.size(); ++i) {
    std::optional<int64_t> value = integerIn(moved[i]);
    if (i == place || !value)
      continue;
    // As many elements in all as before, the same extent, or none.
    const int64_t product = now > 0 ? (*value * before + now - 1) / now : 0;
    for (int64_t other : {product, now, int64_t(0)}) {
      if (reached(goal) || other < 0 || other > largest)
        continue;
      Arguments both = moved;
      both[i] = std::to_string(other);
      if (llvm::Error error = tryOut(both).takeError())
        return error;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<bool> ArgumentExplorer::approach(const Goal &goal, const Run &from, const Deadline &deadline) {
  const size_t before = nearestTo(goal)->run;
  const ConditionSide side = sideOf(from, goal);
  std::vector<size_t> places;
  for (size_t i = 0; i < from.arguments.size(); ++i)
    if (integerIn(from.arguments[i]))
      places.push_back(i);
  // Arguments that are an operand first.
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    auto isOperand = [&](size_t i) {
      return *integerIn(from.arguments[i]) == side.left || *integerIn(from.arguments[i]) == side.right;
    };
    return isOperand(a) > isOperand(b);
  });
  for (size_t place : places) {
    llvm::Expected<std::vector<int64_t>> values = candidates(goal, from, side, place);
    if (!values)
      return values.takeError();
    for (int64_t value : *values) {
      if (reached(goal) || deadline.passed())
        return true;
      Arguments moved = from.arguments;
      moved[place] = std::to_string(value);
      llvm::Expected<const Run *> run = tryOut(moved);
      if (!run)
        return run.takeError();
      if ((*run)->usable && !difference(**run, goal)) {
        if (llvm::Error error = restore(goal, from, moved, place))
          return std::move(error);
        continue;
      }
      if (!(*run)->cutAfter)
        continue;
      llvm::Expected<Arguments> less = shrunk(goal, from, place);
      if (!less)
        return less.takeError();
      (*less)[place] = moved[place];
      run = tryOut(*less);
      if (!run)
        return run.takeError();
      if ((*run)->cutAfter)
        break; // its neighbours take as long
    }
    if (reached(goal))
      return true;
  }
  return nearestTo(goal)->run != before;
}

llvm::Error ArgumentExplorer::pursueAll(const Deadline &deadline) {
  constexpr unsigned mostSteps = 8; // towards one goal
  exhausted.clear();
  while (!deadline.passed()) {
    std::optional<Goal> goal = nextGoal();
    if (!goal)
      break;
    for (unsigned step = 0; step < mostSteps && !reached(*goal) && !deadline.passed(); ++step) {
      // First from a quick run, which has quick neighbours; then from the first one, which is like the user's.
      const Run &from = *all[step == 0   ? quickest.at(goal->condition)
                             : step == 1 ? firstToMeet.at(goal->condition)
                                         : nearestTo(*goal)->run];
      llvm::Expected<bool> nearer = approach(*goal, from, deadline);
      if (!nearer)
        return nearer.takeError();
      if (!*nearer && step > 1)
        break;
    }
    exhausted[*goal] = nearestTo(*goal)->run;
  }
  return llvm::Error::success();
}

llvm::Error ArgumentExplorer::explore(const Deadline &deadline, bool thorough) {
  auto pass = [&](const ProbeOptions &options, double share) {
    how = options;
    return pursueAll(Deadline(share * deadline.remaining(), deadline.flag()));
  };
  // The host decides which kernels run, and on its own it is quick, whatever the sizes.
  if (llvm::Error error = pass({0.5, /*hostOnly=*/true}, 0.3))
    return error;
  limits = true; // which may be out of reach, and must not keep the search from the rest
  llvm::Error error = pass({0.5, /*hostOnly=*/true}, 0.2);
  limits = false;
  if (error)
    return error;
  how = {thorough ? 1 : 0.3, false};
  constexpr size_t mostRuns = 24;
  for (const Arguments &arguments : worthComparing({}, mostRuns))
    if (llvm::Error error = deadline.passed() ? llvm::Error::success() : tryOut(arguments).takeError())
      return error;
  if (error = pass({0.2, false}, thorough ? 0.6 : 1); error || !thorough)
    return error;
  return pass({1, false}, 1);
}

llvm::Expected<Arguments> ArgumentExplorer::alike(const Arguments &arguments, const Arguments &like) {
  how = {0.3, false};
  const Features wanted = featuresOf(arguments);
  Arguments result = arguments;
  for (size_t i = 0; i < std::min(result.size(), like.size()); ++i) {
    if (result[i] == like[i])
      continue;
    Arguments moved = result;
    moved[i] = like[i];
    llvm::Expected<const Run *> run = tryOut(moved);
    if (!run)
      return run.takeError();
    if ((*run)->usable && llvm::all_of(wanted, [&](const auto &feature) {
          return feature.second < mustRun || (*run)->features.count(feature.first);
        }))
      result = moved;
  }
  return result;
}

llvm::Error ArgumentExplorer::sweep(const Deadline &deadline) {
  constexpr int64_t most = 64; // threads of a block along an axis, or elements of a tile
  constexpr double quick = 0.1;
  how = {0.2, false};
  std::vector<Arguments> bases;
  for (const auto &run : all) // the user's first
    if (run->usable && !run->hostOnly && run->seconds < quick && bases.size() < 2)
      bases.push_back(run->arguments);
  for (int64_t step = 1; step <= most; ++step)
    for (const Arguments &base : bases)
      for (size_t i = 0; i < base.size(); ++i) {
        constexpr int64_t leastSize = 4;
        std::optional<int64_t> value = integerIn(base[i]);
        if (!value || *value < leastSize)
          continue;
        if (deadline.passed())
          return llvm::Error::success();
        Arguments moved = base;
        moved[i] = std::to_string(*value + step);
        if (llvm::Error error = tryOut(moved).takeError())
          return error;
      }
  return llvm::Error::success();
}

std::vector<Arguments> ArgumentExplorer::worthComparing(const Features &seen, size_t most) const {
  std::vector<Arguments> result;
  Features left;
  for (const auto &run : all)
    left.insert(run->features.begin(), run->features.end());
  for (auto [feature, weight] : seen)
    left.erase(feature);
  std::vector<const Run *> rest;
  for (const auto &run : all)
    if (run->usable)
      rest.push_back(run.get());
  while (result.size() < most && !left.empty()) {
    const Run *best = nullptr;
    double bestGain = 0;
    for (const Run *run : rest) {
      unsigned shows = 0;
      for (auto [feature, weight] : run->features)
        shows += left.count(feature) ? weight : 0;
      constexpr double start = 0.05; // seconds that any run takes
      if (double gain = double(shows) / (start + run->seconds); gain > bestGain)
        best = run, bestGain = gain;
    }
    if (!best)
      break;
    result.push_back(best->arguments);
    for (auto [feature, weight] : best->features)
      left.erase(feature);
  }
  return result;
}
