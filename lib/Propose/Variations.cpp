//===- Variations.cpp - recipes with other details ------------------------===//
#include "DetailCosts.h"
#include "Forecast.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

void optiml::addParameters(TriedParameters &tried, const LearntTrial &trial) {
  for (const LearntTrial::Step &step : trial.steps)
    if (isMajor(step.transform))
      tried[step.transform].insert(step.params);
}

static bool sameNames(const Params &a, const Params &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto &x, const auto &y) { return x.first == y.first; });
}

static void addWithout(std::vector<Recipe> &result, const Recipe &recipe) {
  for (const Action &action : recipe)
    if (isDetail(action.transform) && !isPreparation(action.transform)) {
      Recipe without = recipe;
      llvm::erase_if(without, [&](const Action &other) { return other.transform == action.transform; });
      result.push_back(std::move(without));
    }
}

static void addReplaced(std::vector<Recipe> &result, const Recipe &recipe, const TriedParameters &tried) {
  for (size_t i = 0; i < recipe.size(); ++i)
    if (auto known = tried.find(recipe[i].transform); known != tried.end())
      for (const Params &params : known->second)
        if (params != recipe[i].params && sameNames(params, recipe[i].params)) {
          result.push_back(recipe);
          result.back()[i].params = params;
        }
}

std::vector<Recipe> optiml::variationsOf(const Recipe &recipe, const TriedParameters &tried) {
  std::vector<Recipe> result;
  addWithout(result, recipe);
  addReplaced(result, recipe, tried);
  std::sort(result.begin(), result.end(),
            [](const Recipe &a, const Recipe &b) { return recipeText(a) < recipeText(b); });
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}
