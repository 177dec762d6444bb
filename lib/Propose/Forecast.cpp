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
/// A step that has another value: so much of the step for a factor of two, at most, and for another word.
static constexpr double perDoubling = 0.15, mostByValue = 0.5, perWord = 0.3;

/// What only trims a recipe, and how much of a step it is. Together they are never more than `mostByTrimming` of one:
/// what they cost is known of details (DetailCosts.h).
static constexpr std::pair<llvm::StringLiteral, double> trimming[] = {{"qualify-pointers", 0.02},
                                                                      {"widen-stores", 0.05},
                                                                      {"unroll", 0.08},
                                                                      {"specialize-scalar", 0.12},
                                                                      {"block-shape", 0.15}};
static constexpr double mostByTrimming = 0.2, byPreparation = 0.05;

bool optiml::isPreparation(llvm::StringRef transform) { return llvm::is_contained(preparations, transform); }

static double weightOf(llvm::StringRef transform) {
  for (const auto &[name, weight] : trimming)
    if (transform == name)
      return weight;
  return isPreparation(transform) ? byPreparation : 1;
}

bool optiml::isDetail(llvm::StringRef transform) { return weightOf(transform) < 1; }

bool optiml::isMajor(llvm::StringRef transform) { return !isDetail(transform) || transform == "block-shape"; }

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
  double rest = 0, trimmed = 0;
  auto count = [&](llvm::StringRef transform, double share) {
    (isDetail(transform) ? trimmed : rest) += weightOf(transform) * share;
  };
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
    count(step.transform, match < b.size() ? least : 1);
    if (match < b.size())
      taken[match] = true;
  }
  for (size_t i = 0; i < b.size(); ++i)
    if (!taken[i])
      count(b[i].transform, 1);
  return rest + std::min(trimmed, mostByTrimming);
}

void Forecast::add(double loss, double distance, double similarity) {
  double share = std::pow(similarity, likeness) * std::exp(-fading * distance);
  sum += share * loss;
  weight += share;
}

double Forecast::doubt() const { return std::sqrt(priorWeight / weight); }
