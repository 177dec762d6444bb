//===- FloatRule.h - what may change in floating point ----------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_FLOATRULE_H
#define OPTIML_SUPPORT_FLOATRULE_H

#include <cfloat>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace optiml {

/// What may change in floating point: nothing; the order of sums; approximate functions and less precision too; inputs
/// of products may besides be rounded to TF32, as tensor cores take them.
enum class FloatMode { Strict, Reassoc, Fast, Tf32 };

/// The same with the budget that Fast and Tf32 have.
struct FloatRule {
  FloatMode mode = FloatMode::Reassoc;
  /// Fast and Tf32: how far a result may be from the exact one, relative to the magnitude of the terms it was made
  /// from.
  double error = 4096 * double(FLT_EPSILON);

  FloatRule() = default;
  FloatRule(FloatMode mode) : mode(mode), error(usualError(mode)) {}
  bool isStrict() const { return mode == FloatMode::Strict; }
  bool isFast() const { return mode == FloatMode::Fast || mode == FloatMode::Tf32; }
  bool allowsTensorCores() const { return mode == FloatMode::Tf32; }

  /// "strict", "reassoc", "fast", "fast:1e-5", "tf32" or "tf32:1e-3", as parse() reads it.
  std::string str() const {
    if (!isFast())
      return mode == FloatMode::Strict ? "strict" : "reassoc";
    const char *name = mode == FloatMode::Fast ? "fast" : "tf32";
    if (error == usualError(mode))
      return name;
    char text[32];
    std::snprintf(text, sizeof text, "%s:%.6g", name, error);
    return text;
  }
  /// False, with `problem` saying what is wanted, for anything else.
  static bool parse(std::string_view text, FloatRule &rule, std::string &problem) {
    rule = {};
    if (text == "strict" || text == "reassoc") {
      rule.mode = text == "strict" ? FloatMode::Strict : FloatMode::Reassoc;
      return true;
    }
    std::string_view name = text.substr(0, 4), budget = text.size() > 5 && text[4] == ':' ? text.substr(5) : "";
    if ((name == "fast" || name == "tf32") && (text.size() == 4 || !budget.empty())) {
      rule = name == "fast" ? FloatMode::Fast : FloatMode::Tf32;
      auto [end, status] = std::from_chars(budget.data(), budget.data() + budget.size(), rule.error);
      if (budget.empty() ||
          (status == std::errc() && end == budget.data() + budget.size() && rule.error > 0 && rule.error < 1))
        return true;
    }
    problem =
        "want strict, reassoc, fast, tf32, or one of the last two with a relative error between 0 and 1 (fast:1e-5)";
    return false;
  }

private:
  /// TF32 has 10 bits after the point: two rounded inputs, each off by one unit of these at most.
  static double usualError(FloatMode mode) { return mode == FloatMode::Tf32 ? 1.0 / 512 : 4096 * double(FLT_EPSILON); }
};

} // namespace optiml

#endif
