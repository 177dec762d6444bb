//===- DetailCosts.h - what the details of recipes cost ---------*- C++ -*-===//
//
// Whether tiling pays depends on the kernel. Whether a row's threads should be 128 or 256, or whether what was spread
// over the grid should also be unrolled, depends on it much less. So this is learnt from kernels of any kind: recipes
// on one kernel that rest on the same transforms are compared with each other, and what they lost is a sum of what
// their details cost (least squares with a penalty on the squares of the costs: Hoerl and Kennard 1970).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_PROPOSE_DETAILCOSTS_H
#define OPTIML_LIB_PROPOSE_DETAILCOSTS_H

#include "optiml/Core/Lesson.h"
#include <set>
#include <span>

namespace optiml {

class DetailCosts {
public:
  /// What was tried on one kernel, or the result of it on other ones; each trial counts at most `share`.
  void add(std::span<const LearntTrial> trials, double share);
  /// Makes costs of what was added. More may be added afterwards, and solved again.
  void solve();
  /// log2 of the time that the details of `recipe` cost, more or less than those of other recipes that rest on the same
  /// transforms.
  double of(const std::vector<LearntTrial::Step> &recipe) const;

private:
  unsigned numberOf(const std::string &detail);

  /// Of the recipes that rest on the same transforms, how often they have each detail.
  struct Group {
    double weight = 0;
    std::map<unsigned, double> details;
  };

  std::map<std::string, unsigned> numbers;
  std::map<std::string, Group> groups;
  std::vector<std::vector<double>> products; ///< the normal equations: the lower triangle
  std::vector<unsigned> kernels;             ///< on which each detail was tried
  std::vector<double> sums;
  std::vector<double> costs;
};

/// The parameters that transforms which recipes rest on were tried with, by name.
using TriedParameters = std::map<std::string, std::set<Params>>;
void addParameters(TriedParameters &tried, const LearntTrial &trial);

/// Recipes that differ from `recipe` by one detail: without the steps of one transform that only trims, or with other
/// parameters, which were tried elsewhere, of a step that it rests on. Whether they apply is not known.
std::vector<Recipe> variationsOf(const Recipe &recipe, const TriedParameters &tried);

} // namespace optiml

#endif
