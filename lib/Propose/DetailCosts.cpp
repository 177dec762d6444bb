//===- DetailCosts.cpp - what the details of recipes cost -----------------===//
#include "DetailCosts.h"
#include "Forecast.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace optiml;
using Steps = std::vector<LearntTrial::Step>;

/// As many trials speak for it that a detail costs nothing.
static constexpr double penalty = 2;
/// What loses more than this against the best that rests on the same transforms has other reasons than its details.
static constexpr double mostByDetails = 1.5;
/// What only one kernel says may be about that kernel.
static constexpr unsigned fewestKernels = 2;
/// So many trials of one kernel that rest on the same transforms count in full; more of them count as many.
static constexpr double mostOfAKind = 8;

/// The transforms that a recipe rests on.
static std::string structureOf(const Steps &recipe) {
  std::set<std::string> names;
  for (const LearntTrial::Step &step : recipe)
    if (!isDetail(step.transform))
      names.insert(step.transform);
  std::string text;
  for (const std::string &name : names)
    text += name + "+";
  return text;
}

/// Each of them together with what the recipe rests on. Of steps that trim, the parameters matter little and are many.
static std::set<std::string> detailsOf(const Steps &recipe) {
  std::set<std::string> details;
  std::string structure = structureOf(recipe) + "|";
  for (const LearntTrial::Step &step : recipe) {
    if (isPreparation(step.transform))
      continue;
    std::string detail = structure + step.transform;
    if (isMajor(step.transform))
      for (const auto &[name, value] : step.params)
        detail += "," + name + "=" + value;
    details.insert(std::move(detail));
  }
  return details;
}

unsigned DetailCosts::numberOf(const std::string &detail) {
  auto [it, isNew] = numbers.try_emplace(detail, unsigned(numbers.size()));
  if (isNew) {
    products.emplace_back(numbers.size());
    kernels.push_back(0);
    sums.push_back(0);
  }
  return it->second;
}

void DetailCosts::add(std::span<const LearntTrial> trials, double share) {
  struct Row {
    std::vector<unsigned> details;
    double loss;
  };
  std::map<std::string, std::vector<Row>> byStructure;
  for (const LearntTrial &trial : trials) {
    Row row{{}, trial.loss};
    for (const std::string &detail : detailsOf(trial.steps))
      row.details.push_back(numberOf(detail));
    byStructure[structureOf(trial.steps)].push_back(std::move(row));
  }
  // Within each group what differs from the group's mean counts, in what a recipe has and in what it lost.
  auto addProducts = [&](const std::map<unsigned, double> &row, double factor) {
    for (const auto &[i, a] : row)
      for (const auto &[j, b] : row)
        if (j <= i)
          products[i][j] += factor * a * b;
  };
  for (auto &[structure, rows] : byStructure) {
    double least = HUGE_VAL, sum = 0, weight = share * std::min(1.0, mostOfAKind / double(rows.size()));
    for (const Row &row : rows)
      least = std::min(least, row.loss);
    for (Row &row : rows)
      sum += row.loss = std::min(row.loss, least + mostByDetails);
    std::map<unsigned, double> mean;
    for (const Row &row : rows) {
      std::map<unsigned, double> own;
      for (unsigned detail : row.details) {
        own[detail] = 1;
        mean[detail] += 1.0 / double(rows.size());
        sums[detail] += weight * (row.loss - sum / double(rows.size()));
      }
      addProducts(own, weight);
    }
    addProducts(mean, -weight * double(rows.size()));
    Group &group = groups[structure];
    group.weight += weight * double(rows.size());
    for (const auto &[detail, often] : mean) {
      ++kernels[detail];
      group.details[detail] += weight * double(rows.size()) * often;
    }
  }
}

/// By Cholesky's factors, as the penalty makes the matrix positive definite.
void DetailCosts::solve() {
  size_t n = numbers.size();
  std::vector<std::vector<double>> factor = products;
  costs = sums;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = factor[i][j] + (i == j ? penalty : 0);
      for (size_t k = 0; k < j; ++k)
        sum -= factor[i][k] * factor[j][k];
      factor[i][j] = i == j ? std::sqrt(sum) : sum / factor[j][j];
    }
    for (size_t k = 0; k < i; ++k)
      costs[i] -= factor[i][k] * costs[k];
    costs[i] /= factor[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k)
      costs[i] -= factor[k][i] * costs[k];
    costs[i] /= factor[i][i];
  }
}

double DetailCosts::of(const Steps &recipe) const {
  auto costOf = [&](unsigned detail) {
    return detail < costs.size() && kernels[detail] >= fewestKernels ? costs[detail] : 0;
  };
  double sum = 0;
  for (const std::string &detail : detailsOf(recipe))
    if (auto it = numbers.find(detail); it != numbers.end())
      sum += costOf(it->second);
  if (auto group = groups.find(structureOf(recipe)); group != groups.end())
    for (const auto &[detail, weight] : group->second.details)
      sum -= costOf(detail) * weight / group->second.weight;
  return sum;
}
