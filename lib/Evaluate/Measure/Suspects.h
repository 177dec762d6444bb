//===- Suspects.h - which actions keep variants from being verified -*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_MEASURE_SUSPECTS_H
#define OPTIML_LIB_EVALUATE_MEASURE_SUSPECTS_H

#include "optiml/Core/Action.h"
#include <map>
#include <set>
#include <string>

namespace optiml {

/// Recipes whose fastest variants share an action that cannot be verified would be refused one after the other. What is
/// verified next is the one with the largest expected gain, by what became of others with the same actions.
class Suspects {
public:
  /// A variant with this recipe was verified, or was not.
  void add(const Recipe &recipe, bool stands) {
    for (const std::string &action : actionsOf(recipe))
      ++(stands ? known[action].stood : known[action].fell);
  }
  /// The chance that it stands: each of its actions counts for itself (Laplace's rule, with one success assumed).
  double chance(const Recipe &recipe) const {
    double result = 1;
    for (const std::string &action : actionsOf(recipe))
      if (auto it = known.find(action); it != known.end())
        result *= (it->second.stood + 1.0) / (it->second.stood + it->second.fell + 1.0);
    return result;
  }

private:
  struct Outcomes {
    unsigned stood = 0, fell = 0;
  };
  static std::set<std::string> actionsOf(const Recipe &recipe) {
    std::set<std::string> result;
    for (const Action &action : recipe)
      result.insert(recipeText({action}));
    return result;
  }
  std::map<std::string, Outcomes> known;
};

} // namespace optiml

#endif
