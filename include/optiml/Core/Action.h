//===- Action.h - one rewrite, and recipes of them --------------*- C++ -*-===//
//
// An Action names a transform, a site and parameters. Text form, used on command lines, in reports and the store:
//
//     transform[site]{name=value,name=value}        e.g.  coarsen[sgemm]{x=8,y=8}
//
// and a recipe is actions separated by ';'. Sites are made of kernel, loop path, array and role (never an offset),
// contain no brackets, and stay valid on the same source. Parameters are integers or words.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_ACTION_H
#define OPTIML_CORE_ACTION_H

#include "llvm/Support/Error.h"
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace optiml {

/// Ordered by name, so that equal parameters print equally. Values are decimal integers or words.
using Params = std::map<std::string, std::string>;

/// The integer value of a parameter; `fallback` when absent or no integer.
long paramInt(const Params &params, const std::string &name, long fallback);

/// "{x=8,y=4}"; empty where there are none.
std::string paramsText(const Params &params);

struct Action {
  std::string transform;
  std::string site;
  Params params;
  std::string str() const;
  static llvm::Expected<Action> parse(llvm::StringRef text);
  bool operator==(const Action &) const = default;
  auto operator<=>(const Action &) const = default;
};

using Recipe = std::vector<Action>;

std::string recipeText(const Recipe &recipe);
llvm::Expected<Recipe> parseRecipe(llvm::StringRef text);
nlohmann::json toJson(const Recipe &recipe);
llvm::Expected<Recipe> recipeFromJson(const nlohmann::json &value);

/// The kernel that a site belongs to: what stands before the loop path or ":array".
llvm::StringRef siteKernel(llvm::StringRef site);

} // namespace optiml

#endif
