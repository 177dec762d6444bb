//===- Numbers.cpp - numbers as people write them -------------------------===//
#include "optiml/Support/Numbers.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>

using namespace optiml;
using llvm::StringRef;

static bool isDigit(StringRef text, size_t at) { return at < text.size() && llvm::isDigit(text[at]); }
static bool isLetter(StringRef text, size_t at) {
  return at < text.size() && (llvm::isAlpha(text[at]) || text[at] == '_');
}

/// The digits with their separators, point and exponent; 0 where there is no number.
static size_t lengthOfDigits(StringRef text) {
  size_t at = text.starts_with("-") || text.starts_with("+") ? 1 : 0;
  if (!isDigit(text, at) && !(at < text.size() && text[at] == '.' && isDigit(text, at + 1)))
    return 0;
  while (isDigit(text, at))
    ++at;
  // 1,000,000: groups of three.
  while (at < text.size() && text[at] == ',' && isDigit(text, at + 1) && isDigit(text, at + 2) &&
         isDigit(text, at + 3) && !isDigit(text, at + 4))
    at += 4;
  if (at < text.size() && text[at] == '.' && isDigit(text, at + 1))
    for (++at; isDigit(text, at);)
      ++at;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t digits = at + 1 + (at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+'));
    if (isDigit(text, digits))
      for (at = digits; isDigit(text, at);)
        ++at;
  }
  return at;
}

static bool isPowerOfTwo(double value) {
  int exponent;
  return value >= 1 && std::frexp(value, &exponent) == 0.5;
}

/// "k", "Mi", " million": what multiplies the number before it. Drops it from `text`.
static double takeUnit(StringRef &text, double value) {
  static const struct {
    StringRef name;
    double decimal, binary;
  } units[] = {{"ki", 1024, 1024}, {"mi", 1 << 20, 1 << 20}, {"gi", 1 << 30, 1 << 30},
               {"k", 1e3, 1024},   {"m", 1e6, 1 << 20},      {"g", 1e9, 1 << 30}},
    words[] = {{"thousand", 1e3, 1e3}, {"million", 1e6, 1e6}, {"billion", 1e9, 1e9}};
  for (const auto &unit : units)
    if (text.starts_with_insensitive(unit.name) && !isLetter(text, unit.name.size()) &&
        !isDigit(text, unit.name.size())) {
      text = text.drop_front(unit.name.size());
      return isPowerOfTwo(value) ? unit.binary : unit.decimal;
    }
  for (const auto &word : words)
    if (text.ltrim().starts_with_insensitive(word.name)) {
      text = text.ltrim().drop_front(word.name.size());
      return word.decimal;
    }
  return 1;
}

std::optional<double> optiml::takeNumber(StringRef &text) {
  size_t length = lengthOfDigits(text);
  if (!length)
    return std::nullopt;
  std::string digits;
  for (char c : text.take_front(length))
    if (c != ',' && c != '+')
      digits += c;
  double value;
  if (StringRef(digits).getAsDouble(value))
    return std::nullopt;
  StringRef rest = text.drop_front(length);
  for (StringRef power : {"**", "^", "<<"}) {
    StringRef after = rest.ltrim();
    unsigned exponent;
    if (after.consume_front(power) && !(after = after.ltrim()).consumeInteger(10, exponent) && exponent < 64) {
      text = after;
      return power == "<<" ? std::ldexp(value, int(exponent)) : std::pow(value, exponent);
    }
  }
  value *= takeUnit(rest, value);
  bool isShape = rest.size() > 1 && (rest[0] == 'x' || rest[0] == 'X') && isDigit(rest, 1);
  if (isLetter(rest, 0) && !isShape)
    return std::nullopt;
  text = rest;
  return value;
}

std::optional<double> optiml::parseNumber(StringRef text) {
  StringRef rest = text.trim();
  std::optional<double> value = takeNumber(rest);
  return rest.empty() ? value : std::nullopt;
}

std::string optiml::shortestNumber(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return std::to_string(int64_t(value));
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}
