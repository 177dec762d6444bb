//===- ModelFlags.cpp - values of the flags --optiml-llm* -----------------===//
#include "optiml/LanguageModels/ModelFlags.h"

#include <algorithm>
#include <charconv>

using namespace optiml;

static constexpr size_t mostModels = 16;

template <typename T> static bool parseNumber(std::string_view text, T &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

static bool isModel(std::string_view value) {
  for (std::string_view scheme : {"http://", "https://", "anthropic:http://", "anthropic:https://", "exec:", "replay:"})
    if (value.starts_with(scheme) && value.size() > scheme.size())
      return true;
  return false;
}

bool optiml::addModel(std::string_view value, ModelFlags &flags, std::string &error) {
  if (!isModel(value))
    error = "want a URL (http://… or https://…, anthropic:https://… for Anthropic's protocol), exec:COMMAND, or "
            "replay:FILE";
  else if (flags.models.size() == mostModels)
    error = "there are more than " + std::to_string(mostModels) + " models";
  else
    flags.models.emplace_back(value);
  return error.empty();
}

bool optiml::addModelName(std::string_view value, ModelFlags &flags, std::string &error) {
  bool printable = std::all_of(value.begin(), value.end(), [](unsigned char c) { return c > ' ' && c < 127; });
  if (value.empty() || value.size() > 200 || !printable)
    error = "want the name of a model as its server knows it";
  else if (flags.names.size() == mostModels)
    error = "there are more than " + std::to_string(mostModels) + " models";
  else
    flags.names.emplace_back(value);
  return error.empty();
}

bool optiml::addKeyVariable(std::string_view value, ModelFlags &flags, std::string &error) {
  auto partOfName = [](unsigned char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  // A key that was given in place of the variable's name must not be repeated in a message; most are no names.
  bool isName = !value.empty() && value.size() <= 64 && std::all_of(value.begin(), value.end(), partOfName) &&
                !(value[0] >= '0' && value[0] <= '9');
  if (!isName)
    error = "want the name of an environment variable that holds the key, not the key itself";
  else if (flags.keyVariables.size() == mostModels)
    error = "there are more than " + std::to_string(mostModels) + " models";
  else
    flags.keyVariables.emplace_back(value);
  return error.empty();
}

bool optiml::setModelBudget(std::string_view value, ModelFlags &flags, std::string &error) {
  ModelBudget budget;
  bool calls = false, tokens = false, money = false, good = true;
  for (std::string_view left = value; good;) {
    size_t comma = left.find(',');
    std::string_view part = left.substr(0, comma);
    double number = 0;
    if (part.ends_with("usd")) {
      good = !money && parseNumber(part.substr(0, part.size() - 3), number) && number > 0 && number <= 1e6;
      budget.usd = number;
      money = true;
    } else if (part.ends_with("k") || part.ends_with("M")) {
      good = !tokens && parseNumber(part.substr(0, part.size() - 1), number) && number > 0 && number <= 1e9;
      budget.tokens = good ? uint64_t(number * (part.back() == 'k' ? 1e3 : 1e6)) : 0;
      tokens = true;
    } else {
      good = !calls && parseNumber(part, budget.calls) && budget.calls > 0;
      calls = true;
    }
    if (comma == std::string_view::npos)
      break;
    left.remove_prefix(comma + 1);
  }
  if (!good)
    error = "want a number of calls (20), tokens (200k, 1.5M), money (1.50usd), or several of them (20,200k,1.50usd)";
  else
    flags.budget = budget;
  return good;
}

bool optiml::setModelTimeout(std::string_view value, ModelFlags &flags, std::string &error) {
  double seconds = 0;
  if (!parseNumber(value, seconds) || !(seconds > 0) || !(seconds <= 86400))
    error = "want a number of seconds, such as 120, at most a day";
  else
    flags.timeout = seconds;
  return error.empty();
}
