//===- Forecast.h - how a recipe will fare, from those that were tried -*- C++ -*-===//
//
// A recipe fares as recipes like it fared on kernels like this one: the mean of what they lost, each weighed by how
// alike the two kernels and the two recipes are (Nadaraya and Watson's estimate), drawn to a prior where little is
// known.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_PROPOSE_FORECAST_H
#define OPTIML_LIB_PROPOSE_FORECAST_H

#include "optiml/Core/Lesson.h"
#include "llvm/ADT/StringRef.h"

namespace optiml {

/// How far apart two recipes are: 0 for the same steps, whatever their places and order, and about 1 for each step of
/// weight that only one of them has; other parameters are a part of a step.
double recipeDistance(const std::vector<LearntTrial::Step> &a, const std::vector<LearntTrial::Step> &b);

/// What a kernel in another style needs before it is like others; done wherever it can be done.
inline constexpr llvm::StringLiteral preparations[] = {"thread-per-iteration", "loop-to-grid", "loop-to-grid",
                                                       "swap-thread-axes", "promote-accumulator"};

/// Whether a recipe rests on such steps; others only trim it.
bool isMajor(llvm::StringRef transform);

class Forecast {
public:
  /// What is assumed, and of how many trials of the same recipe on the same kernel it has the weight.
  Forecast(double prior, double weight) : sum(prior * weight), weight(weight) {}
  /// Weighs what `trial` lost on a kernel that is so similar (0 to 1) to that of `recipe`.
  void add(const std::vector<LearntTrial::Step> &recipe, const LearntTrial &trial, double similarity);
  double loss() const { return sum / weight; }

private:
  double sum, weight;
};

} // namespace optiml

#endif
