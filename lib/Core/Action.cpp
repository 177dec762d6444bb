//===- Action.cpp - one rewrite, and recipes of them ----------------------===//
#include "optiml/Core/Action.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <nlohmann/json.hpp>

using namespace optiml;
using llvm::StringRef;

long optiml::paramInt(const Params &params, const std::string &name, long fallback) {
  auto it = params.find(name);
  long value;
  if (it == params.end() || StringRef(it->second).getAsInteger(10, value))
    return fallback;
  return value;
}

std::string optiml::paramsText(const Params &params) {
  std::string text;
  for (const auto &[name, value] : params)
    text += (text.empty() ? "{" : ",") + name + "=" + value;
  return text.empty() ? text : text + "}";
}

std::string Action::str() const { return transform + "[" + site + "]" + paramsText(params); }

static bool isWord(StringRef text) {
  return !text.empty() &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

llvm::Expected<Action> Action::parse(StringRef text) {
  text = text.trim();
  auto bad = [&](const char *why) {
    return makeError("bad action '{0}': {1}; expected transform[site]{{name=value,...}", text, why);
  };
  Action action;
  auto [name, afterName] = text.split('[');
  if (!isWord(name.trim()))
    return bad("no transform name");
  action.transform = name.trim().str();
  // A site may hold brackets itself (q.strides[2]): its own closes before the braces, or at the end.
  size_t close = afterName.find(']');
  while (close != StringRef::npos && !afterName.drop_front(close + 1).ltrim().empty() &&
         !afterName.drop_front(close + 1).ltrim().starts_with("{"))
    close = afterName.find(']', close + 1);
  if (close == StringRef::npos)
    return bad("no closing ']'");
  action.site = afterName.take_front(close).trim().str();
  StringRef rest = afterName.drop_front(close + 1).trim();
  if (rest.empty())
    return action;
  if (!rest.consume_front("{") || !rest.consume_back("}"))
    return bad("parameters must stand in braces");
  llvm::SmallVector<StringRef, 8> parts;
  rest.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [key, value] = part.split('=');
    if (!isWord(key.trim()) || !isWord(value.trim()))
      return bad("a parameter must read name=value");
    if (!action.params.emplace(key.trim().str(), value.trim().str()).second)
      return bad("a parameter is given twice");
  }
  return action;
}

std::string optiml::recipeText(const Recipe &recipe) {
  return llvm::join(llvm::map_range(recipe, [](const Action &action) { return action.str(); }), ";");
}

llvm::Expected<Recipe> optiml::parseRecipe(StringRef text) {
  Recipe recipe;
  // Template arguments in a site may hold anything but brackets and semicolons.
  llvm::SmallVector<StringRef, 8> parts;
  text.split(parts, ';', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    if (part.trim().empty())
      continue;
    auto action = Action::parse(part);
    if (!action)
      return action.takeError();
    recipe.push_back(std::move(*action));
  }
  return recipe;
}

nlohmann::json optiml::toJson(const Recipe &recipe) {
  nlohmann::json result = nlohmann::json::array();
  for (const Action &action : recipe)
    result.push_back({{"transform", action.transform}, {"site", action.site}, {"params", action.params}});
  return result;
}

llvm::Expected<Recipe> optiml::recipeFromJson(const nlohmann::json &value) {
  if (!value.is_array())
    return makeError("a recipe must be a JSON array of actions");
  Recipe recipe;
  for (const nlohmann::json &item : value) {
    if (!item.is_object() || !item.contains("transform") || !item["transform"].is_string() || !item.contains("site") ||
        !item["site"].is_string())
      return makeError("an action must be an object with strings 'transform' and 'site'");
    Action action{item["transform"], item["site"], {}};
    if (item.contains("params")) {
      if (!item["params"].is_object())
        return makeError("an action's 'params' must be an object");
      for (const auto &[name, param] : item["params"].items()) {
        if (!param.is_string() && !param.is_number_integer())
          return makeError("parameter '{0}' must be a string or an integer", name);
        action.params[name] = param.is_string() ? param.get<std::string>() : std::to_string(param.get<long>());
      }
    }
    recipe.push_back(std::move(action));
  }
  return recipe;
}

llvm::StringRef optiml::siteKernel(llvm::StringRef site) {
  size_t slash = site.find('/');
  if (slash != llvm::StringRef::npos)
    return site.take_front(slash);
  // The last ':' that is no half of a "::" parts the array from the kernel.
  for (size_t i = site.size(); i-- > 0;)
    if (site[i] == ':') {
      if (i > 0 && site[i - 1] == ':')
        --i;
      else
        return site.take_front(i);
    }
  return site;
}
