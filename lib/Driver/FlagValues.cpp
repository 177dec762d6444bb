//===- FlagValues.cpp - values of flags that have a syntax ----------------===//
//
// Budgets (`200,90s`) and command lines in one text.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Flags.h"

#include <charconv>
#include <cmath>

using namespace optiml;

template <typename T> static bool parseNumber(std::string_view text, T &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool optiml::parseBudget(std::string_view text, SearchBudget &budget, std::string &error) {
  budget = {0, 0};
  bool haveCount = false, haveTime = false;
  for (std::string_view left = text; error.empty();) {
    size_t comma = left.find(',');
    std::string_view part = left.substr(0, comma);
    double unit = part.empty() ? 0 : part.back() == 's' ? 1 : part.back() == 'm' ? 60 : part.back() == 'h' ? 3600 : 0;
    if (unit > 0) {
      double value = 0;
      part.remove_suffix(1);
      if (haveTime || !parseNumber(part, value) || !(value > 0) || !std::isfinite(value))
        break;
      budget.seconds = value * unit;
      haveTime = true;
    } else {
      if (haveCount || !parseNumber(part, budget.evaluations) || budget.evaluations == 0)
        break;
      haveCount = true;
    }
    if (comma == std::string_view::npos)
      return true;
    left.remove_prefix(comma + 1);
  }
  error = "want a number of evaluations (200), a time (90s, 5m, 2h), or both (200,90s)";
  return false;
}

bool optiml::splitCommandLine(std::string_view text, std::vector<std::string> &words, std::string &error) {
  words.clear();
  std::string word;
  bool inWord = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool escapes =
        c == '\\' && quote != '\'' && i + 1 < text.size() && (!quote || text[i + 1] == '"' || text[i + 1] == '\\');
    if (escapes) {
      word += text[++i];
      inWord = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inWord = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inWord)
        words.push_back(std::move(word));
      word.clear();
      inWord = false;
    } else {
      word += c;
      inWord = true;
    }
  }
  if (quote) {
    error = std::string("the quote ") + quote + " is not closed";
    return false;
  }
  if (inWord)
    words.push_back(std::move(word));
  return true;
}
