//===- FloatRule.h - what may change in floating point ----------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_FLOATRULE_H
#define OPTIML_SUPPORT_FLOATRULE_H

#include <charconv>
#include <cfloat>
#include <cstdio>
#include <string>
#include <string_view>

namespace optiml {

/// What may change in floating point: nothing; the order of sums; approximate functions and less precision too.
enum class FloatMode { Strict, Reassoc, Fast };

/// The same with the budget that Fast has.
struct FloatRule {
  FloatMode mode = FloatMode::Reassoc;
  /// Fast: how far a result may be from the exact one, relative to the magnitude of the terms that it was made from.
  double error = 4096 * double(FLT_EPSILON);

  FloatRule() = default;
  FloatRule(FloatMode mode) : mode(mode) {}
  bool isStrict() const { return mode == FloatMode::Strict; }
  bool isFast() const { return mode == FloatMode::Fast; }

  /// "strict", "reassoc", "fast" or "fast:1e-5", as parse() reads it.
  std::string str() const {
    if (mode != FloatMode::Fast)
      return mode == FloatMode::Strict ? "strict" : "reassoc";
    if (error == FloatRule().error)
      return "fast";
    char text[32];
    std::snprintf(text, sizeof text, "fast:%.6g", error);
    return text;
  }
  /// False, with `problem` saying what is wanted, for anything else.
  static bool parse(std::string_view text, FloatRule &rule, std::string &problem) {
    rule = {};
    if (text == "strict" || text == "reassoc") {
      rule.mode = text == "strict" ? FloatMode::Strict : FloatMode::Reassoc;
      return true;
    }
    std::string_view budget = text.size() > 5 && text.substr(0, 5) == "fast:" ? text.substr(5) : "";
    if (text == "fast" || !budget.empty()) {
      rule.mode = FloatMode::Fast;
      auto [end, status] = std::from_chars(budget.data(), budget.data() + budget.size(), rule.error);
      if (budget.empty() || (status == std::errc() && end == budget.data() + budget.size() && rule.error > 0 && rule.error < 1))
        return true;
    }
    problem = "want strict, reassoc, fast, or fast:ERROR with a relative error between 0 and 1 (fast:1e-5)";
    return false;
  }
};

} // namespace optiml

#endif
