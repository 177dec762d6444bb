//===- Forecast.h - how a recipe will fare, from those that were tried -*- C++ -*-===//
//
// A recipe fares as recipes like it fared on kernels like this one: the mean of what they lost, each weighed by how
// alike the two kernels and the two recipes are (Nadaraya and Watson's estimate), drawn to a prior where little is
// known.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_PROPOSE_FORECAST_H
#define OPTIML_LIB_PROPOSE_FORECAST_H

#include "optiml/Propose/Memory.h"

namespace optiml {

/// How far apart two recipes are: 0 for the same steps, whatever their places and order, about 1 for each step that
/// only one of them rests on, and little for details; other parameters are a part of a step.
double recipeDistance(const std::vector<LearntTrial::Step> &a, const std::vector<LearntTrial::Step> &b);

bool isPreparation(llvm::StringRef transform); ///< one of `preparations`

/// Whether it only trims a recipe, or prepares it; it rests on other transforms.
bool isDetail(llvm::StringRef transform);

/// Whether a line of the book is about such steps.
bool isMajor(llvm::StringRef transform);

class Forecast {
public:
  /// What is assumed, and of how many trials of the same recipe on the same kernel it has the weight.
  Forecast(double prior, double weight) : sum(prior * weight), weight(weight), priorWeight(weight) {}
  /// Something was seen to lose so much, at such a distance from the recipe and on a kernel that is so similar (0 to
  /// 1).
  void add(double loss, double distance, double similarity);
  double loss() const { return sum / weight; }
  /// How much of the uncertainty is left, from 1 down: of the standard deviation.
  double doubt() const;

private:
  double sum, weight, priorWeight;
};

} // namespace optiml

#endif
