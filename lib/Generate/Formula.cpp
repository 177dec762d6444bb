//===- Formula.cpp - arithmetic expressions of requests -------------------===//
#include "Formula.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;
using Kind = FormulaNode::Kind;

namespace {

using Function = double (*)(const std::vector<double> &);

/// The functions, with the number of their arguments.
const llvm::StringMap<std::pair<unsigned, Function>> &functions() {
  static const llvm::StringMap<std::pair<unsigned, Function>> all = [] {
    llvm::StringMap<std::pair<unsigned, Function>> result;
#define ONE(name, call) result[#name] = { 1, [](const std::vector<double> &x) { return double(call(x[0])); } }
#define TWO(name, call) result[#name] = { 2, [](const std::vector<double> &x) { return double(call(x[0], x[1])); } }
    ONE(exp, std::exp), ONE(log, std::log), ONE(sqrt, std::sqrt), ONE(abs, std::fabs), ONE(tanh, std::tanh);
    ONE(sin, std::sin), ONE(cos, std::cos), ONE(tan, std::tan), ONE(erf, std::erf), ONE(erfc, std::erfc);
    ONE(floor, std::floor), ONE(ceil, std::ceil), ONE(round, std::round), ONE(trunc, std::trunc);
    ONE(log1p, std::log1p), ONE(expm1, std::expm1), ONE(log2, std::log2), ONE(exp2, std::exp2), ONE(log10, std::log10);
    ONE(atan, std::atan), ONE(asin, std::asin), ONE(acos, std::acos), ONE(sinh, std::sinh), ONE(cosh, std::cosh);
    ONE(cbrt, std::cbrt);
    TWO(max, std::fmax), TWO(min, std::fmin), TWO(pow, std::pow), TWO(fmod, std::fmod), TWO(atan2, std::atan2);
    TWO(hypot, std::hypot);
    result["fma"] = {3, [](const std::vector<double> &x) { return std::fma(x[0], x[1], x[2]); }};
#undef ONE
#undef TWO
    return result;
  }();
  return all;
}

Formula node(Kind kind, StringRef text) {
  auto result = std::make_unique<FormulaNode>();
  result->kind = kind;
  result->text = text.str();
  return result;
}

/// Precedence climbing. The first error is kept, and what is parsed then does not matter.
class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}

  llvm::Expected<Formula> run() {
    Formula result = conditional();
    if (!rest.trim().empty())
      fail("'" + rest.trim().take_front(20).str() + "' is not understood here");
    if (!problem.empty())
      return makeError(problem);
    return result;
  }

private:
  void fail(const std::string &why) {
    if (problem.empty())
      problem = why;
  }

  bool take(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }

  Formula make(Kind kind, StringRef text, Formula a, Formula b = nullptr, Formula c = nullptr) {
    Formula result = node(kind, text);
    for (Formula *operand : {&a, &b, &c})
      if (*operand)
        result->operands.push_back(std::move(*operand));
    return result;
  }

  Formula conditional() {
    if (++depth > 100)
      fail("the formula is nested too deeply");
    Formula condition = problem.empty() ? binary(0) : node(Kind::Number, "0");
    --depth;
    if (!take("?"))
      return condition;
    Formula yes = conditional();
    if (!take(":"))
      fail("a '?' needs its ':'");
    return make(Kind::Conditional, "?", std::move(condition), std::move(yes), conditional());
  }

  /// The operators by precedence, the weakest first.
  Formula binary(size_t level) {
    static const std::vector<std::vector<StringRef>> levels = {
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == levels.size())
      return unary();
    Formula left = binary(level + 1);
    while (problem.empty()) {
      rest = rest.ltrim();
      bool isPower = rest.starts_with("**");
      auto found = llvm::find_if(levels[level], [&](StringRef token) { return !isPower && rest.starts_with(token); });
      if (found == levels[level].end())
        return left;
      rest = rest.drop_front(found->size());
      left = make(Kind::Binary, *found, std::move(left), binary(level + 1));
    }
    return left;
  }

  Formula unary() {
    if (++depth > 100)
      fail("the formula is nested too deeply");
    Formula result;
    if (!problem.empty())
      result = node(Kind::Number, "0");
    else if (take("-"))
      result = make(Kind::Unary, "-", unary());
    else if (take("+"))
      result = unary();
    else
      result = power();
    --depth;
    return result;
  }

  /// Binds stronger than a sign before it, and to the right.
  Formula power() {
    Formula base = primary();
    if (take("**") || take("^"))
      return make(Kind::Call, "pow", std::move(base), unary());
    return base;
  }

  Formula primary() {
    rest = rest.ltrim();
    if (take("(")) {
      Formula inner = conditional();
      if (!take(")"))
        fail("a ')' is missing");
      return inner;
    }
    if (rest.starts_with("|") && !rest.starts_with("||")) { // |x|
      rest = rest.drop_front();
      Formula inner = binary(1);
      if (!take("|"))
        fail("a '|' is missing");
      return make(Kind::Call, "abs", std::move(inner));
    }
    if (!rest.empty() && (llvm::isDigit(rest[0]) || rest[0] == '.'))
      return number();
    StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name == "e" && rest.drop_front().ltrim().starts_with("^")) { // e^x
      rest = rest.drop_front();
      return node(Kind::Number, "2.718281828459045");
    }
    if (name.empty()) {
      fail(rest.empty() ? "the formula ends too early" : "'" + rest.take_front(20).str() + "' is not understood");
      return node(Kind::Number, "0");
    }
    rest = rest.drop_front(name.size());
    return take("(") ? call(name) : subscripted(name);
  }

  Formula number() {
    size_t end = rest.find_first_not_of("0123456789.");
    if (end != StringRef::npos && (rest[end] == 'e' || rest[end] == 'E')) {
      size_t digits = rest.find_first_not_of("+-", end + 1);
      if (digits != StringRef::npos && llvm::isDigit(rest[digits]))
        end = rest.find_first_not_of("0123456789", digits);
    }
    StringRef text = rest.take_front(end);
    rest = rest.drop_front(text.size());
    rest.consume_front("f");
    double value;
    if (text.getAsDouble(value))
      fail("'" + text.str() + "' is no number");
    return node(Kind::Number, text.starts_with(".") ? "0" + text.str() : text.str());
  }

  Formula call(StringRef name) {
    Formula result = node(Kind::Call, name == "fabs" ? "abs" : name == "fmax" ? "max" : name == "fmin" ? "min" : name);
    auto known = functions().find(result->text);
    do
      result->operands.push_back(conditional());
    while (problem.empty() && take(","));
    if (!take(")"))
      fail("a ')' is missing");
    if (known == functions().end())
      fail("there is no function '" + name.str() + "'");
    else if (known->second.first != result->operands.size())
      fail("'" + name.str() + "' takes " + std::to_string(known->second.first) + " arguments");
    return result;
  }

  Formula subscripted(StringRef name) {
    if (take("[")) {
      StringRef index = rest.take_until([](char c) { return c == ']'; });
      rest = rest.drop_front(index.size());
      if (!take("]") || index.trim() != "i")
        fail("'" + name.str() + "[" + index.str() + "]': a formula is element-wise, and the index is i");
    }
    return node(Kind::Name, name);
  }

  StringRef rest;
  std::string problem;
  unsigned depth = 0;
};

} // namespace

bool optiml::gen::isMathFunction(StringRef name) { return functions().contains(name); }

llvm::Expected<Formula> optiml::gen::parseFormula(StringRef text) {
  size_t equals = text.find('=');
  StringRef left = text.take_front(equals).trim();
  bool assigns = equals != StringRef::npos && !text.substr(equals).starts_with("==") && !left.empty() &&
                 llvm::all_of(left, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '[' || c == ']'; });
  return Parser(assigns ? text.substr(equals + 1) : text).run();
}

static void collectNames(const FormulaNode &formula, std::vector<std::string> &names) {
  if (formula.kind == Kind::Name && !llvm::is_contained(names, formula.text))
    names.push_back(formula.text);
  for (const Formula &operand : formula.operands)
    collectNames(*operand, names);
}

std::vector<std::string> optiml::gen::namesIn(const FormulaNode &formula) {
  std::vector<std::string> names;
  collectNames(formula, names);
  return names;
}

static double applied(StringRef op, double a, double b) {
  if (op == "+")
    return a + b;
  if (op == "-")
    return a - b;
  if (op == "*")
    return a * b;
  if (op == "/")
    return a / b;
  if (op == "%")
    return std::fmod(a, b);
  if (op == "<")
    return a < b;
  if (op == ">")
    return a > b;
  if (op == "<=")
    return a <= b;
  if (op == ">=")
    return a >= b;
  if (op == "==")
    return a == b;
  if (op == "!=")
    return a != b;
  return op == "&&" ? a && b : a || b;
}

double optiml::gen::evaluate(const FormulaNode &formula, const std::map<std::string, double> &values) {
  std::vector<double> x;
  for (const Formula &operand : formula.operands)
    x.push_back(evaluate(*operand, values));
  double number = 0;
  switch (formula.kind) {
  case Kind::Number: StringRef(formula.text).getAsDouble(number); return number;
  case Kind::Name: {
    auto at = values.find(formula.text);
    return at == values.end() ? NAN : at->second;
  }
  case Kind::Call: return functions().lookup(formula.text).second(x);
  case Kind::Unary: return -x[0];
  case Kind::Binary: return applied(formula.text, x[0], x[1]);
  case Kind::Conditional: return x[0] != 0 ? x[1] : x[2];
  }
  return NAN;
}

/// How strongly a node holds together: what binds more weakly than its place needs parentheses.
static unsigned precedence(const FormulaNode &formula) {
  if (formula.kind == Kind::Conditional)
    return 0;
  if (formula.kind == Kind::Unary)
    return 7;
  if (formula.kind != Kind::Binary)
    return 8;
  static const std::pair<StringRef, unsigned> levels[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<", 4},
                                                          {">", 4},  {"<=", 4}, {">=", 4}, {"+", 5},  {"-", 5},
                                                          {"*", 6},  {"/", 6},  {"%", 6}};
  return llvm::find_if(levels, [&](const auto &level) { return level.first == formula.text; })->second;
}

std::string optiml::gen::asTemplate(const FormulaNode &formula, const std::map<std::string, std::string> &renamed) {
  std::vector<std::string> parts;
  for (const Formula &operand : formula.operands) {
    bool isRight = !parts.empty();
    bool fits = formula.kind == Kind::Call || precedence(*operand) >= precedence(formula) + isRight;
    std::string text = asTemplate(*operand, renamed);
    parts.push_back(fits ? text : "(" + text + ")");
  }
  switch (formula.kind) {
  case Kind::Number: return "${" + formula.text + "}";
  case Kind::Name: return renamed.at(formula.text);
  case Kind::Call:
    if (formula.text == "pow" && formula.operands[1]->kind == Kind::Number && formula.operands[1]->text == "2" &&
        formula.operands[0]->kind == Kind::Name)
      return "(" + parts[0] + " * " + parts[0] + ")";
    return "${" + formula.text + "}(" + llvm::join(parts, ", ") + ")";
  case Kind::Unary: return "-" + parts[0];
  case Kind::Binary: return parts[0] + " " + formula.text + " " + parts[1];
  case Kind::Conditional: // stands inside others' expressions
    return parts[0] + " ? " + parts[1] + " : " + parts[2];
  }
  return "";
}
