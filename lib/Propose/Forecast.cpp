//===- Forecast.cpp - how a recipe will fare ------------------------------===//
#include "Forecast.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using Steps = std::vector<LearntTrial::Step>;

/// How soon likeness fades with the distance of recipes, and with the likeness of kernels.
static constexpr double fading = 10, likeness = 3;
/// What is this much worse than the best is bad, and no more is learnt from how bad.
static constexpr double mostLoss = 3;
/// A step that has another value: so much of the step for a factor of two, at most, and for another word.
static constexpr double perDoubling = 0.15, mostByValue = 0.5, perWord = 0.3;

/// Steps that change less than the others. Whether a line is a good one rests on the rest of it.
static double weightOf(llvm::StringRef transform) {
  static constexpr std::pair<const char *, double> weights[] = {{"qualify-pointers", 0.05},
                                                                {"widen-stores", 0.2},
                                                                {"unroll", 0.35},
                                                                {"specialize-scalar", 0.4},
                                                                {"block-shape", 0.5}};
  if (llvm::is_contained(preparations, transform))
    return 0.05;
  for (const auto &[name, weight] : weights)
    if (transform == name)
      return weight;
  return 1;
}

bool optiml::isMajor(llvm::StringRef transform) { return weightOf(transform) >= 0.5; }

static double parameterDistance(const Params &a, const Params &b) {
  auto apart = [](const Params &from, const Params &to, bool both) {
    double sum = 0;
    for (const auto &[name, value] : from) {
      auto other = to.find(name);
      long x = 0, y = 0;
      if (other == to.end())
        sum += perWord;
      else if (!both || other->second == value)
        continue;
      else if (!llvm::StringRef(value).getAsInteger(10, x) && !llvm::StringRef(other->second).getAsInteger(10, y) &&
               x > 0 && y > 0)
        sum += std::min(mostByValue, perDoubling * std::abs(std::log2(double(x) / double(y))));
      else
        sum += perWord;
    }
    return sum;
  };
  return std::min(1.0, apart(a, b, true) + apart(b, a, false));
}

double optiml::recipeDistance(const Steps &a, const Steps &b) {
  double sum = 0;
  std::vector<bool> taken(b.size());
  for (const LearntTrial::Step &step : a) {
    double least = HUGE_VAL;
    size_t match = b.size();
    for (size_t i = 0; i < b.size(); ++i)
      if (!taken[i] && b[i].transform == step.transform)
        if (double d = parameterDistance(step.params, b[i].params); d < least) {
          least = d;
          match = i;
        }
    sum += weightOf(step.transform) * (match < b.size() ? least : 1);
    if (match < b.size())
      taken[match] = true;
  }
  for (size_t i = 0; i < b.size(); ++i)
    sum += taken[i] ? 0 : weightOf(b[i].transform);
  return sum;
}

void Forecast::add(const Steps &recipe, const LearntTrial &trial, double similarity) {
  double share = std::pow(similarity, likeness) * std::exp(-fading * recipeDistance(recipe, trial.steps));
  sum += share * std::clamp(trial.loss, 0.0, mostLoss);
  weight += share;
}
