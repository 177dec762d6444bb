//===- RequestTest.cpp - formal requests and formulas ---------------------===//
#include "Formula.h"
#include "optiml/Generate/ProgramText.h"
#include "gtest/gtest.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace optiml::gen;
using nlohmann::json;

namespace {

ProgramSpec resolved(const json &value) {
  llvm::Expected<Request> request = readRequest(value);
  if (!request) {
    ADD_FAILURE() << value << ": " << llvm::toString(request.takeError());
    return {};
  }
  llvm::Expected<ProgramSpec> spec = resolve(*request, Library::builtin());
  if (!spec) {
    ADD_FAILURE() << value << ": " << llvm::toString(spec.takeError());
    return {};
  }
  return *spec;
}

std::string refusal(const json &value) {
  llvm::Expected<Request> request = readRequest(value);
  if (!request)
    return llvm::toString(request.takeError());
  llvm::Expected<ProgramSpec> spec = resolve(*request, Library::builtin());
  return spec ? "" : llvm::toString(spec.takeError());
}

TEST(Request, DefaultsAreFilledIn) {
  ProgramSpec spec = resolved({{"operation", "softmax"}, {"options", {{"rows", 300}, {"type", "fp16"}}}});
  EXPECT_EQ(spec.operation->name, "softmax");
  EXPECT_EQ(spec.type, "half");
  EXPECT_EQ(spec.sizes["rows"], 300);
  EXPECT_EQ(spec.sizes["cols"], 1024);
  EXPECT_EQ(spec.choices["axis"], "row");
}

TEST(Request, StagesGoAroundAnOperationAndInOrderIntoAMap) {
  ProgramSpec product = resolved({{"operation", "gemm"}, {"after", {{{"stage", "bias"}}, {{"stage", "relu"}}}}});
  ASSERT_EQ(product.after.size(), 2u);
  EXPECT_EQ(product.after[0].operation->name, "bias");
  ProgramSpec chain = resolved({{"operation", "exp"},
                                {"before", {{{"stage", "scale"}, {"options", {{"factor", 0.5}}}}}},
                                {"after", {{{"stage", "square"}}}}});
  EXPECT_EQ(chain.operation->name, "map");
  ASSERT_EQ(chain.before.size(), 3u);
  EXPECT_EQ(chain.before[0].reals.at("factor"), 0.5);
  EXPECT_EQ(chain.before[1].operation->name, "exp");
  EXPECT_EQ(resolved({{"operation", "bias"}}).operation->name, "map2d");
  EXPECT_EQ(resolved({{"operation", "relu"}, {"options", {{"rows", 7}}}}).operation->name, "map2d");
}

TEST(Request, AFormulaIsAStage) {
  ProgramSpec spec =
      resolved({{"formula", "out[i] = alpha * x[i]^2 + max(y[i], 0)"}, {"options", {{"alpha", 2.5}, {"n", "1e4"}}}});
  EXPECT_EQ(spec.sizes["n"], 10000);
  std::string text = llvm::cantFail(writeProgram(spec, "it", Library::builtin()));
  EXPECT_NE(text.find("alpha * (v * v) + fmaxf(y, 0.0f)"), std::string::npos) << text;
}

TEST(Request, WhatIsWrongIsNamed) {
  const std::pair<json, const char *> cases[] = {
      {json::array(), "a request is a JSON object"},
      {{{"operation", "sum"}, {"size", 3}}, "a request has no field 'size'"},
      {{{"options", {{"n", 3}}}}, "a request has either an operation or a formula"},
      {{{"operation", "sum"}, {"formula", "x + 1"}}, "a request has either an operation or a formula"},
      {{{"operation", "eigenvalues"}}, "the library has no operation 'eigenvalues'; --list shows what it has"},
      {{{"operation", "sum"}, {"options", {{"rows", 3}}}}, "sum has no option 'rows'; it has type, n"},
      {{{"operation", "sum"}, {"options", {{"n", json::array()}}}}, "options.n: want a number or a text"},
      {{{"operation", "sum"}, {"options", {{"n", 2.5}}}}, "--n=2.5: want a whole number from 1 to 1073741824"},
      {{{"operation", "fft"}, {"options", {{"n", 1000}}}}, "--n=1000: want a power of two"},
      {{{"operation", "fft"}, {"options", {{"type", "half"}}}},
       "fft is not offered for half; its types are float, double"},
      {{{"operation", "softmax"}, {"options", {{"axis", "diagonal"}}}}, "--axis=diagonal: want row, column"},
      {{{"operation", "clamp"}}, "clamp needs --low"},
      {{{"operation", "scale"}, {"options", {{"factor", 0.5}, {"type", "int"}}}},
       "--factor=0.5: want a whole number, as the type is int"},
      {{{"operation", "gemm"}, {"before", {{{"stage", "relu"}}}}}, "gemm takes no stages before it"},
      {{{"operation", "gemm"}, {"after", {{{"stage", "sum"}}}}},
       "'sum' is no stage; a stage is an element-wise operation"},
      {{{"operation", "gemm"}, {"after", {{{"stage", "scale"}}}}}, "scale needs --factor"},
      {{{"operation", "gemm"}, {"after", {{{"stage", "relu"}, {"options", {{"slope", 1}}}}}}},
       "relu has no option 'slope'; it has none"},
      {{{"operation", "sum"}, {"before", {{{"stage", "bias"}}}}}, "sum has no columns for the stage bias"},
      {{{"formula", "x +"}}, "formula 'x +': the formula ends too early"},
      {{{"formula", "x[i+1] - x[i]"}},
       "formula 'x[i+1] - x[i]': 'x[i+1]': a formula is element-wise, and the index is i"},
      {{{"formula", "1 + 2"}}, "formula '1 + 2': it reads no array (names without a value are arrays)"},
      {{{"formula", "exp(x)"}, {"options", {{"type", "int"}}}}, "the function exp needs a floating-point type"},
  };
  for (const auto &[value, why] : cases)
    EXPECT_EQ(refusal(value), why) << value;
}

TEST(Request, ItsFormsAreEquivalent) {
  Request request{"softmax", "", {{"rows", "12"}, {"type", "half"}}, {{"scale", {{"factor", "0.5"}}}}, {{"exp", {}}}};
  Request again = llvm::cantFail(readRequest(toJson(request)));
  EXPECT_EQ(toJson(again), toJson(request));
  EXPECT_EQ(commandLine(request), "optiml-gen softmax --rows=12 --type=half --before=scale,factor=0.5 --after=exp");
}

TEST(Request, TheSchemaHasEveryOperation) {
  json schema = requestSchema(Library::builtin());
  std::set<std::string> names;
  for (const json &entry : schema["oneOf"])
    names.insert(entry["properties"].value("operation", json::object()).value("const", ""));
  for (const Operation &op : Library::builtin().operations())
    EXPECT_EQ(names.count(op.name), op.isPublic()) << op.name;
}

TEST(Formula, HasTheValuesOfC) {
  std::map<std::string, double> values = {{"x", 3}, {"y", -2}, {"z", 0.5}};
  const double x = 3, y = -2, z = 0.5;
  const std::pair<const char *, double> cases[] = {
      {"x", x},
      {"out = x - y - z", x - y - z},
      {"x - (y - z)", x - (y - z)},
      {"x / y / z", x / y / z},
      {"-x ^ 2", -std::pow(x, 2)},
      {"2 ** 3 ** 2", 512},
      {"x ^ -1", 1 / x},
      {"x * y + z % 0.3", x * y + std::fmod(z, 0.3)},
      {"x > y && z < 1 ? x : y", x},
      {"x < y || z >= 1 ? x : y == -2 ? 7 : 8", 7},
      {"fmax(x, abs(y)) + pow(z, 2)", 3.25},
      {"1e2 + .5 + 2.f", 102.5},
      {"fma(x, y, z)", -5.5},
  };
  for (const auto &[text, value] : cases) {
    llvm::Expected<Formula> formula = parseFormula(text);
    ASSERT_TRUE(bool(formula)) << text << ": " << llvm::toString(formula.takeError());
    EXPECT_DOUBLE_EQ(evaluate(**formula, values), value) << text;
  }
}

TEST(Formula, IsWrittenWithFewParentheses) {
  std::map<std::string, std::string> names = {{"x", "v"}, {"y", "y"}, {"a", "a"}};
  const std::pair<const char *, const char *> cases[] = {{"a*x + y", "a * v + y"},
                                                         {"a*(x + y)", "a * (v + y)"},
                                                         {"a - (x - y)", "a - (v - y)"},
                                                         {"a - x - y", "a - v - y"},
                                                         {"a / (x * y)", "a / (v * y)"},
                                                         {"-(x + y)", "-(v + y)"},
                                                         {"x^2 / y", "(v * v) / y"},
                                                         {"x > 0 ? x : a*x", "v > ${0} ? v : a * v"},
                                                         {"(x > 0 ? x : y) + a", "(v > ${0} ? v : y) + a"},
                                                         {"|x - y|", "${abs}(v - y)"},
                                                         {"e^x", "${pow}(${2.718281828459045}, v)"}};
  for (const auto &[text, written] : cases)
    EXPECT_EQ(asTemplate(*llvm::cantFail(parseFormula(text)), names), written) << text;
}

TEST(Formula, WhatIsNoneIsAnError) {
  std::vector<std::string> bad = {"",       "x +",   "(x",   "x)", "x y",   "f(x)",
                                  "max(x)", "x ? y", "x[j]", "1e", "x $ y", "= x"};
  bad.push_back(std::string(100000, '('));
  bad.push_back(std::string(100000, '-') + "x");
  for (const std::string &text : bad) {
    llvm::Expected<Formula> formula = parseFormula(text);
    EXPECT_FALSE(bool(formula)) << text.substr(0, 20);
    llvm::consumeError(formula.takeError());
  }
}

} // namespace
