//===- FormulaValue.cpp - formulas are the same when their values are -----===//
//
// Indices run over a few places, arrays hold numbers that depend on the place and on which array it is, and what a
// formula's target then holds is compared. Names do not matter: every way in which the arrays and scalars of both can
// correspond is tried.
//
//===----------------------------------------------------------------------===//
#include "Formula.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace optiml::gen;
using llvm::StringRef;

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

ExprPtr make(Expr::Kind kind, std::string name, std::vector<ExprPtr> args = {}) {
  return std::make_shared<Expr>(Expr{kind, std::move(name), 0, std::move(args)});
}

/// What the names of a formula are.
struct Names {
  std::map<std::string, std::pair<size_t, bool>> arrays; ///< dimensions, and whether its elements are indices
  std::set<std::string> indices, bound, scalars;
  std::set<double> numbers;
  bool isFormula = true;

  void add(const Expr &expr, bool inSubscript) {
    switch (expr.kind) {
    case Expr::Kind::Number:
      if (!inSubscript)
        numbers.insert(expr.value);
      return;
    case Expr::Kind::Name:
      if (expr.name != "n" && expr.name != "pi")
        (inSubscript ? indices : scalars).insert(expr.name);
      isFormula &= expr.name.back() != '\'';
      return;
    case Expr::Kind::Index: {
      auto [it, isNew] = arrays.insert({expr.name, {expr.args.size(), inSubscript}});
      isFormula &= isNew || it->second.first == expr.args.size();
      it->second.second |= inSubscript;
      for (const ExprPtr &arg : expr.args)
        add(*arg, true);
      return;
    }
    case Expr::Kind::Call:
      // A function that gives a subscript ("bin(x[i])") may be any; elsewhere it must be known.
      isFormula &= inSubscript || isKnown(expr);
      for (const ExprPtr &arg : expr.args)
        add(*arg, inSubscript && isKnown(expr));
      return;
    case Expr::Kind::Reduce:
      indices.insert(expr.args[0]->name);
      bound.insert(expr.args[0]->name);
      add(*expr.args[1], inSubscript);
      for (const ExprPtr &limit : llvm::ArrayRef(expr.args).drop_front(2))
        add(*limit, true);
      return;
    }
  }
  static bool isKnown(const Expr &call);
};

double callFunction(StringRef name, llvm::ArrayRef<double> a) {
  auto is = [&](StringRef one) { return name == one || name == (one + "f").str(); };
  if (a.size() == 3 && (name == "?:" || name == "where"))
    return a[0] != 0 ? a[1] : a[2];
  if (a.size() == 3 && (name == "clamp" || name == "clip"))
    return std::min(std::max(a[0], a[1]), a[2]);
  if (a.size() == 3 && is("fma"))
    return a[0] * a[1] + a[2];
  if (a.size() == 2) {
    double x = a[0], y = a[1];
    if (name.size() <= 2 && !llvm::isAlpha(name[0]))
      return name == "+"    ? x + y
             : name == "-"  ? x - y
             : name == "*"  ? x * y
             : name == "/"  ? x / y
             : name == "%"  ? std::fmod(x, y)
             : name == "^"  ? std::pow(x, y)
             : name == ">"  ? x > y
             : name == "<"  ? x < y
             : name == ">=" ? x >= y
             : name == "<=" ? x <= y
             : name == "==" ? x == y
                            : x != y;
    if (is("max") || is("fmax") || name == "maximum")
      return std::max(x, y);
    if (is("min") || is("fmin") || name == "minimum")
      return std::min(x, y);
    if (is("pow") || name == "power")
      return std::pow(x, y);
    if (is("hypot"))
      return std::hypot(x, y);
  }
  if (a.size() == 1) {
    double x = a[0];
    using Function = double (*)(double);
    static const llvm::StringMap<Function> functions = {
        {"-", [](double x) { return -x; }},
        {"exp", [](double x) { return std::exp(x); }},
        {"log", [](double x) { return std::log(x); }},
        {"ln", [](double x) { return std::log(x); }},
        {"log2", [](double x) { return std::log2(x); }},
        {"log1p", [](double x) { return std::log1p(x); }},
        {"expm1", [](double x) { return std::expm1(x); }},
        {"sqrt", [](double x) { return std::sqrt(x); }},
        {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
        {"abs", [](double x) { return std::fabs(x); }},
        {"fabs", [](double x) { return std::fabs(x); }},
        {"sin", [](double x) { return std::sin(x); }},
        {"cos", [](double x) { return std::cos(x); }},
        {"tanh", [](double x) { return std::tanh(x); }},
        {"erf", [](double x) { return std::erf(x); }},
        {"floor", [](double x) { return std::floor(x); }},
        {"ceil", [](double x) { return std::ceil(x); }},
        {"square", [](double x) { return x * x; }},
        {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
        {"swish", [](double x) { return x / (1 + std::exp(-x)); }},
        {"relu", [](double x) { return std::max(x, 0.0); }},
        {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
        {"sign", [](double x) { return double((x > 0) - (x < 0)); }},
    };
    auto found = functions.find(name);
    if (found == functions.end() && name.ends_with("f"))
      found = functions.find(name.drop_back());
    if (found != functions.end())
      return found->second(x);
  }
  return none;
}

bool Names::isKnown(const Expr &call) {
  std::vector<double> ones(call.args.size(), 0.5);
  return !std::isnan(callFunction(call.name, ones));
}

/// One evaluation: the meaning of names is given.
struct Evaluation {
  int places;
  unsigned seed;
  double range = 20;                      ///< of the values in half of the runs: beyond the formulas' numbers
  std::vector<double> between = {};       ///< the values of later runs: on either side of each of the formulas' numbers
  std::map<std::string, unsigned> arrays; ///< which one it is
  std::map<std::string, bool> integral;
  std::map<std::string, double> scalars;
  std::map<std::string, int> indices;

  static double mix(unsigned a) {
    a = (a ^ 61) ^ (a >> 16), a *= 9, a ^= a >> 4, a *= 0x27d4eb2d, a ^= a >> 15;
    return a / 4294967296.0;
  }
  double value(const Expr &expr, bool inSubscript = false) {
    switch (expr.kind) {
    case Expr::Kind::Number:
      return expr.value;
    case Expr::Kind::Name:
      if (auto index = indices.find(expr.name); index != indices.end())
        return index->second;
      if (expr.name == "n")
        return places;
      if (expr.name == "pi")
        return 3.14159265358979;
      return scalars.at(expr.name);
    case Expr::Kind::Index: {
      unsigned at = arrays.at(expr.name) * 7919 + (seed < 4 ? seed * 104729 + 1 : seed);
      for (const ExprPtr &arg : expr.args) {
        double place = value(*arg, true);
        if (!(place >= 0) || place >= places || place != std::floor(place))
          return none;
        at = at * 31 + unsigned(place) + 17;
      }
      double random = mix(at);
      if (integral.at(expr.name))
        return std::floor(random * places);
      if (seed >= 4)
        return between[at % between.size()];
      double most = seed < 2 ? 2 : range;
      return seed % 2 ? 0.25 + (most - 0.5) * random : most * (2 * random - 1); // positive for roots, or both signs
    }
    case Expr::Kind::Call: {
      if (expr.name == "?:" && expr.args.size() == 3)
        return value(*expr.args[0]) != 0 ? value(*expr.args[1]) : value(*expr.args[2]);
      std::vector<double> args;
      for (const ExprPtr &arg : expr.args)
        args.push_back(value(*arg));
      if (llvm::any_of(args, [](double arg) { return std::isnan(arg); }))
        return none;
      double result = callFunction(expr.name, args);
      if (inSubscript && !Names::isKnown(expr)) // any function gives a place
        result = std::floor(mix(unsigned(args[0] * 1000003.0)) * places);
      return result;
    }
    case Expr::Kind::Reduce: {
      const std::string &name = expr.args[0]->name;
      double from = expr.args.size() > 2 ? value(*expr.args[2]) : 0,
             to = expr.args.size() > 3 ? value(*expr.args[3]) : places - 1;
      double result = expr.name == "prod" ? 1 : expr.name == "max" ? -1e300 : expr.name == "min" ? 1e300 : 0;
      auto outer = indices.find(name) == indices.end() ? std::optional<int>() : indices[name];
      for (int i = int(from); i <= int(to); ++i) {
        indices[name] = i;
        double one = value(*expr.args[1]);
        result = expr.name == "prod"  ? result * one
                 : expr.name == "max" ? std::max(result, one)
                 : expr.name == "min" ? std::min(result, one)
                                      : result + one;
        if (std::isnan(one))
          result = none;
      }
      indices.erase(name);
      if (outer)
        indices[name] = *outer;
      return expr.name == "mean" ? result / (to - from + 1) : result;
    }
    }
    return none;
  }
};

/// A formula with its loops.
struct Program {
  Formula formula;
  Names names;
  std::vector<ExprPtr> subscripts; ///< of the target
  std::vector<std::string> loops;  ///< the target's indices, then what is added up over
  bool fromZero = false;           ///< the target holds a sum at the end
  bool valid = false;

  explicit Program(const Formula &given) : formula(given) {
    names.add(*formula.value, false);
    if (formula.target && formula.target->kind == Expr::Kind::Index)
      subscripts = formula.target->args;
    Names target;
    for (const ExprPtr &subscript : subscripts)
      target.add(*subscript, true);
    std::set<std::string> own = target.indices;
    std::set<std::string> free;
    for (const std::string &index : names.indices)
      if (!names.bound.count(index) && !own.count(index))
        free.insert(index);
    if (!formula.target) {
      for (const std::string &index : free)
        subscripts.push_back(make(Expr::Kind::Name, index));
      own = free;
      free.clear();
    }
    bool isPlain =
        llvm::all_of(subscripts, [](const ExprPtr &subscript) { return subscript->kind == Expr::Kind::Name; });
    if (formula.accumulates && free.empty() && isPlain) {
      formula.value = make(Expr::Kind::Call, "+", {formula.target, formula.value});
      formula.accumulates = false;
    }
    names = Names();
    names.add(*formula.value, false);
    for (const ExprPtr &subscript : subscripts)
      names.add(*subscript, true);
    for (const std::string &index : names.indices)
      names.scalars.erase(index);
    loops.assign(own.begin(), own.end());
    loops.insert(loops.end(), free.begin(), free.end());
    fromZero = formula.accumulates;
    bool readsTarget =
        formula.target && names.arrays.count(formula.target->name); // "d[i][j] = min(d[i][j], d[i][k] + d[k][j])"
    valid = names.isFormula && (free.empty() || fromZero || readsTarget) && !names.arrays.empty() &&
            names.arrays.size() <= 4 && names.scalars.size() <= 4 && loops.size() <= 4;
    for (const auto &[name, what] : names.arrays)
      valid &= !names.scalars.count(name) && !names.indices.count(name);
  }

  std::map<std::vector<int>, double> run(Evaluation evaluation) const {
    std::map<std::vector<int>, double> result;
    size_t count = 1;
    for (size_t i = 0; i < loops.size(); ++i)
      count *= size_t(evaluation.places);
    for (size_t which = 0; which < count; ++which) {
      size_t rest = which;
      for (const std::string &loop : loops) {
        evaluation.indices[loop] = int(rest % size_t(evaluation.places));
        rest /= size_t(evaluation.places);
      }
      std::vector<int> place;
      for (const ExprPtr &subscript : subscripts) {
        double at = evaluation.value(*subscript, true);
        place.push_back(at >= 0 && at < evaluation.places ? int(at) : -1);
      }
      if (llvm::is_contained(place, -1))
        continue;
      double value = evaluation.value(*formula.value);
      if (fromZero)
        result[place] += value;
      else
        result[place] = value;
    }
    return result;
  }
};

bool isSame(const std::map<std::vector<int>, double> &a, const std::map<std::vector<int>, double> &b,
            size_t &compared) {
  if (a.size() != b.size())
    return false;
  for (auto left = a.begin(), right = b.begin(); left != a.end(); ++left, ++right) {
    double x = left->second, y = right->second;
    if (left->first != right->first || std::isnan(x) != std::isnan(y))
      return false;
    if (!std::isnan(x) && !(std::isinf(x) && x == y)) {
      ++compared;
      if (!(std::fabs(x - y) <= 1e-9 * (1 + std::fabs(x))))
        return false;
    }
  }
  return true;
}

} // namespace

std::optional<std::map<std::string, double>> optiml::gen::sameFormula(const Formula &askedFormula,
                                                                      const Formula &knownFormula,
                                                                      const std::vector<std::string> &reals) {
  Program asked(askedFormula), known(knownFormula);
  if (!asked.valid || !known.valid || asked.subscripts.size() != known.subscripts.size() ||
      asked.names.arrays.size() != known.names.arrays.size() || asked.names.scalars.size() > known.names.scalars.size())
    return std::nullopt;
  std::vector<std::string> order; // of the asked arrays
  for (const auto &[name, what] : asked.names.arrays)
    order.push_back(name);
  std::vector<std::string> scalars(known.names.scalars.begin(), known.names.scalars.end()),
      given(asked.names.scalars.begin(), asked.names.scalars.end());
  std::vector<double> numbers;
  for (double number : asked.names.numbers)
    for (double one : {number, -number, 1 / number})
      if (std::isfinite(one) && !llvm::is_contained(numbers, one))
        numbers.push_back(one);
  Evaluation base{asked.loops.size() + asked.names.bound.size() > 2 ? 4 : 6, 0, 20, {}, {}, {}, {}, {}};
  for (double number : asked.names.numbers)
    base.range = std::max(base.range, 2.5 * std::fabs(number));
  for (double number : asked.names.numbers) { // "x > 0.25" is not "x > 0"
    auto next = asked.names.numbers.upper_bound(number);
    base.between.push_back(next == asked.names.numbers.end() ? number + 1 : (number + *next) / 2);
  }
  base.between.push_back(asked.names.numbers.empty() ? 1 : *asked.names.numbers.begin() - 1);
  Evaluation forKnown = base, forAsked = base;
  unsigned id = 0;
  for (const auto &[name, what] : known.names.arrays)
    forKnown.arrays[name] = id++, forKnown.integral[name] = what.second;
  for (size_t i = 0; i < given.size(); ++i)
    forAsked.scalars[given[i]] = 0.7 + 0.37 * double(i);
  do {
    bool fits = true;
    id = 0;
    auto other = known.names.arrays.begin();
    for (const std::string &name : order) {
      fits &= other->second == asked.names.arrays[name];
      forAsked.arrays[name] = id++, forAsked.integral[name] = other->second.second;
      ++other;
    }
    if (!fits)
      continue;
    // Every scalar of the known one is a scalar of the asked one, or a number of it.
    size_t choices = given.size() + numbers.size(), count = 1;
    for (size_t i = 0; i < scalars.size(); ++i)
      count *= choices;
    for (size_t which = 0; which < std::min<size_t>(count, 20000); ++which) {
      size_t rest = which;
      std::set<size_t> named;
      std::map<std::string, double> values;
      bool possible = true;
      for (const std::string &scalar : scalars) {
        size_t chosen = rest % choices;
        rest /= choices;
        if (chosen < given.size()) {
          possible &= named.insert(chosen).second;
          forKnown.scalars[scalar] = forAsked.scalars[given[chosen]];
        } else {
          possible &= llvm::is_contained(reals, scalar);
          values[scalar] = forKnown.scalars[scalar] = numbers[chosen - given.size()];
        }
      }
      if (!possible || named.size() != given.size())
        continue;
      size_t compared = 0;
      bool same = true;
      for (unsigned seed = 0; seed < 8 && same; ++seed) {
        forKnown.seed = forAsked.seed = seed;
        same = isSame(asked.run(forAsked), known.run(forKnown), compared);
      }
      if (same && compared >= 3)
        return values;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}
