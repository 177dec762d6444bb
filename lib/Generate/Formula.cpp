//===- Formula.cpp - parsing of formulas ----------------------------------===//
#include "Formula.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml::gen;
using llvm::StringRef;

namespace {

ExprPtr makeExpr(Expr::Kind kind, std::string name, std::vector<ExprPtr> args = {}, double value = 0) {
  return std::make_shared<Expr>(Expr{kind, std::move(name), value, std::move(args)});
}

/// Recursive descent; null on what is no formula. `at` is behind what has been read.
class Parser {
public:
  explicit Parser(StringRef text) : text(text.str()), lower(text.lower()) {}

  std::optional<Formula> formula() {
    Formula result;
    result.target = primary();
    skip();
    StringRef rest = StringRef(lower).substr(at);
    if (result.target && (result.target->kind == Expr::Kind::Name || result.target->kind == Expr::Kind::Index)) {
      char update = rest.size() > 1 && rest[1] == '=' && StringRef("+-*/^").contains(rest[0]) ? rest[0] : 0;
      if (update || rest.starts_with(":=") || (rest.starts_with("=") && !rest.starts_with("=="))) {
        at += update || rest[0] == ':' ? 2 : 1;
        result.value = ternary();
        result.accumulates = update == '+';
        if (update && update != '+' && result.value)
          result.value = makeExpr(Expr::Kind::Call, std::string(1, update), {result.target, result.value});
        return result.value ? std::optional(result) : std::nullopt;
      }
    }
    at = 0;
    result.target = nullptr;
    result.value = ternary();
    return result.value ? std::optional(result) : std::nullopt;
  }
  size_t at = 0;

private:
  void skip() {
    while (at < lower.size() && lower[at] == ' ')
      ++at;
  }
  bool eat(StringRef sign) {
    size_t before = at;
    skip();
    if (StringRef(lower).substr(at).starts_with(sign)) {
      at += sign.size();
      return true;
    }
    at = before;
    return false;
  }

  ExprPtr ternary() {
    ExprPtr condition = comparison();
    size_t end = at;
    if (!condition || !eat("?"))
      return condition;
    ExprPtr then = ternary();
    ExprPtr otherwise = then && eat(":") ? ternary() : nullptr;
    if (!otherwise) {
      at = end;
      return condition;
    }
    return makeExpr(Expr::Kind::Call, "?:", {condition, then, otherwise});
  }
  /// `next (sign next)*`; where what is behind the sign is no operand, the sign is not part of the formula.
  template <typename Next> ExprPtr chain(Next next, std::initializer_list<StringRef> signs) {
    ExprPtr left = next();
    while (left) {
      size_t end = at;
      StringRef found;
      for (StringRef sign : signs)
        if (found.empty() && eat(sign))
          found = sign;
      ExprPtr right = found.empty() ? nullptr : next();
      if (!right) {
        at = end;
        return left;
      }
      left = makeExpr(Expr::Kind::Call, found == "·" ? "*" : found.str(), {left, right});
    }
    return nullptr;
  }
  ExprPtr comparison() {
    return chain([&] { return sum(); }, {">=", "<=", "==", "!=", ">", "<"});
  }
  ExprPtr sum() {
    return chain([&] { return product(); }, {"+", "-"});
  }
  ExprPtr product() {
    ExprPtr left = chain([&] { return unary(); }, {"*", "/", "%"});
    // "a_ik b_kj"
    while (left && left->kind != Expr::Kind::Number && left->kind != Expr::Kind::Name) {
      size_t end = at;
      skip();
      ExprPtr right = at < lower.size() && llvm::isAlpha(lower[at]) ? primary() : nullptr;
      if (!right || right->kind != Expr::Kind::Index) {
        at = end;
        return left;
      }
      left = makeExpr(Expr::Kind::Call, "*", {left, right});
    }
    return left;
  }
  ExprPtr unary() {
    if (eat("-")) {
      ExprPtr operand = unary();
      return operand ? makeExpr(Expr::Kind::Call, "-", {operand}) : nullptr;
    }
    ExprPtr base = postfix();
    size_t end = at;
    if (base && (eat("**") || eat("^"))) {
      bool braced = at < lower.size() && lower[at] == '{';
      at += braced;
      ExprPtr exponent = braced ? sum() : unary();
      if (braced && !eat("}"))
        exponent = nullptr;
      if (!exponent) {
        at = end;
        return base;
      }
      if (base->kind == Expr::Kind::Name && base->name == "e")
        return makeExpr(Expr::Kind::Call, "exp", {exponent});
      return makeExpr(Expr::Kind::Call, "^", {base, exponent});
    }
    // "2x", "0.5(a + b)"
    if (base && base->kind == Expr::Kind::Number && at < lower.size() && (llvm::isAlpha(lower[at]) || lower[at] == '('))
      if (ExprPtr factor = unary())
        return makeExpr(Expr::Kind::Call, "*", {base, factor});
    return base;
  }
  std::optional<std::vector<ExprPtr>> list(StringRef close) {
    std::vector<ExprPtr> result;
    do {
      // "dim=1" of a call says something about it, and is no argument.
      size_t before = at;
      skip();
      size_t end = at;
      while (end < lower.size() && (llvm::isAlnum(lower[end]) || lower[end] == '_'))
        ++end;
      if (end > at && end + 1 < lower.size() && lower[end] == '=' && lower[end + 1] != '=') {
        at = end + 1;
        if (!ternary())
          return std::nullopt;
        continue;
      }
      at = before;
      ExprPtr one = ternary();
      if (!one)
        return std::nullopt;
      result.push_back(one);
    } while (eat(","));
    return eat(close) ? std::optional(result) : std::nullopt;
  }
  /// The subscripts of "_i", "_ij", "_{i-1}", "[i][j]", "[i,j]".
  bool subscripts(std::vector<ExprPtr> &result) {
    while (at < lower.size() &&
           (lower[at] == '[' || (lower[at] == '_' && at + 1 < lower.size() && lower[at + 1] == '{'))) {
      bool bracket = lower[at] == '[';
      at += bracket ? 1 : 2;
      std::optional<std::vector<ExprPtr>> more = list(bracket ? "]" : "}");
      if (!more || more->empty())
        return false;
      result.insert(result.end(), more->begin(), more->end());
    }
    return true;
  }
  ExprPtr postfix() { return primary(); }
  ExprPtr reduction(std::string name, ExprPtr index, ExprPtr from, ExprPtr to) {
    ExprPtr body = product();
    if (!body)
      return nullptr;
    std::vector<ExprPtr> args = {index, body};
    if (from && to)
      args.insert(args.end(), {from, to});
    return makeExpr(Expr::Kind::Reduce, std::move(name), args);
  }
  ExprPtr primary() {
    skip();
    if (at >= lower.size())
      return nullptr;
    char c = lower[at];
    if (llvm::isDigit(c) || (c == '.' && at + 1 < lower.size() && llvm::isDigit(lower[at + 1]))) {
      size_t end = at;
      while (end < lower.size() && (llvm::isDigit(lower[end]) ||
                                    (lower[end] == '.' && end + 1 < lower.size() && llvm::isDigit(lower[end + 1]))))
        ++end;
      if (end + 1 < lower.size() && lower[end] == 'e' &&
          (llvm::isDigit(lower[end + 1]) || (lower[end + 1] == '-' && end + 2 < lower.size()))) {
        end += 2;
        while (end < lower.size() && llvm::isDigit(lower[end]))
          ++end;
      }
      double value = 0;
      if (StringRef(lower).slice(at, end).getAsDouble(value))
        return nullptr;
      at = end;
      if (at < lower.size() && lower[at] == 'f' && (at + 1 == lower.size() || !llvm::isAlnum(lower[at + 1])))
        ++at;
      return makeExpr(Expr::Kind::Number, "", {}, value);
    }
    if (eat("(")) {
      ExprPtr inner = ternary();
      return inner && eat(")") ? inner : nullptr;
    }
    if (eat("|")) {
      ExprPtr inner = sum();
      return inner && eat("|") ? makeExpr(Expr::Kind::Call, "abs", {inner}) : nullptr;
    }
    if (!llvm::isAlpha(c))
      return nullptr;
    size_t end = at;
    while (end < lower.size() && (llvm::isAlnum(lower[end]) ||
                                  (lower[end] == '_' && end + 1 < lower.size() && llvm::isAlnum(lower[end + 1]))))
      ++end;
    std::string name = lower.substr(at, end - at);
    bool isCapital = end == at + 1 && StringRef("ABCDLMPQRSUVWXYZ").contains(text[at]);
    // "xW", "Ax"
    isCapital |= end == at + 2 && llvm::isUpper(text[at]) != llvm::isUpper(text[at + 1]) && llvm::isAlpha(text[at + 1]);
    at = end;
    static const llvm::StringSet<> modules = {"np",  "torch", "f",  "math",       "numpy", "jnp",
                                              "std", "tf",    "nn", "functional", "cp"};
    if (at + 1 < lower.size() && lower[at] == '.' && llvm::isAlpha(lower[at + 1])) {
      ++at;
      ExprPtr rest = primary();
      if (modules.contains(name) || !rest)
        return rest;
      if (rest->kind != Expr::Kind::Call) // "x.sum(dim=1)"
        return nullptr;
      std::vector<ExprPtr> args = rest->args;
      args.insert(args.begin(), makeExpr(Expr::Kind::Name, name));
      return makeExpr(Expr::Kind::Call, rest->name, args);
    }
    auto [base, suffix] = StringRef(name).rsplit('_');
    static const llvm::StringSet<> reductions = {"sum", "prod", "product", "max", "min", "mean"};
    auto canonical = [](StringRef reduction) { return reduction == "product" ? std::string("prod") : reduction.str(); };
    if (reductions.contains(base) && suffix.size() == 1)
      return reduction(canonical(base), makeExpr(Expr::Kind::Name, suffix.str()), nullptr, nullptr);
    if (reductions.contains(name) && StringRef(lower).substr(at).starts_with("_{"))
      return boundedReduction(canonical(name));
    if (at < lower.size() && lower[at] == '(') {
      size_t before = at++;
      std::optional<std::vector<ExprPtr>> args = eat(")") ? std::vector<ExprPtr>() : list(")");
      if (!args) {
        at = before;
        return nullptr;
      }
      return makeExpr(Expr::Kind::Call, name, *args);
    }
    // "x_i", "a_ij"; "u_new" is a name.
    static const StringRef letters = "ijklrcbt";
    std::vector<ExprPtr> subs;
    if (!suffix.empty() && suffix.size() <= 3 && llvm::all_of(suffix, [](char l) { return letters.contains(l); })) {
      for (char letter : suffix)
        subs.push_back(makeExpr(Expr::Kind::Name, std::string(1, letter)));
      name = base.str();
    }
    if (!subscripts(subs))
      return nullptr;
    if (!subs.empty())
      return makeExpr(Expr::Kind::Index, name, subs);
    return makeExpr(Expr::Kind::Name, isCapital ? name + "'" : name); // a matrix: no array of numbers
  }
  /// "sum_{j=0}^{n-1}", "sum_{j<=i}", "sum_{k}".
  ExprPtr boundedReduction(std::string name) {
    at += 2;
    ExprPtr index = primary(), from = makeExpr(Expr::Kind::Number, "", {}, 0), to;
    if (!index || index->kind != Expr::Kind::Name)
      return nullptr;
    if (eat("<=")) {
      to = sum();
    } else if (eat("<")) {
      to = sum();
      if (to)
        to = makeExpr(Expr::Kind::Call, "-", {to, makeExpr(Expr::Kind::Number, "", {}, 1)});
    } else if (eat("=")) {
      from = sum();
      if (eat("..") && !eat("."))
        to = sum();
    }
    if (!eat("}"))
      return nullptr;
    if (eat("^")) {
      bool braced = eat("{");
      to = braced ? sum() : primary();
      if (braced && !eat("}"))
        return nullptr;
    }
    return reduction(std::move(name), index, from, to);
  }

  std::string text, lower;
};

} // namespace

std::optional<std::pair<Formula, size_t>> optiml::gen::parseFormula(StringRef text) {
  Parser parser(text);
  std::optional<Formula> result = parser.formula();
  if (!result)
    return std::nullopt;
  return std::pair(*result, parser.at);
}
