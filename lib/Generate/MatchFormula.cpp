//===- MatchFormula.cpp - formulas among plain words ----------------------===//
#include "Formula.h"
#include "ReadWords.h"
#include "optiml/Support/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <random>
#include <set>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Where a formula stands
//===----------------------------------------------------------------------===//

static bool isSimpleName(StringRef name) {
  return (name.size() == 1 && llvm::isLower(name[0])) || name == "alpha" || name == "beta";
}

/// "row-wise" and "2-d" are words. In "(a-b)^2" something is done to the difference of two simple names.
static bool hasHyphen(StringRef text) {
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '-' || !llvm::isAlnum(text[i - 1]) || !llvm::isAlpha(text[i + 1]))
      continue;
    auto isWord = [](char c) { return llvm::isAlnum(c); };
    StringRef left = text.take_front(i), right = text.drop_front(i + 1);
    left = left.drop_front(left.find_last_not_of("abcdefghijklmnopqrstuvwxyz0123456789") + 1);
    right = right.take_while(isWord);
    bool isUsed = text.find_first_of("()^*/", 0) != StringRef::npos;
    if (!isUsed || !isSimpleName(left) || !isSimpleName(right))
      return true;
  }
  return false;
}

/// An operator or a function between simple names.
static Formula asFormula(StringRef text) {
  if (hasHyphen(text))
    return nullptr;
  llvm::Expected<Formula> formula = parseFormula(text);
  if (!formula) {
    llvm::consumeError(formula.takeError());
    return nullptr;
  }
  bool isOne =
      !(*formula)->operands.empty() && !namesIn(**formula).empty() && llvm::all_of(namesIn(**formula), isSimpleName);
  return isOne ? std::move(*formula) : nullptr;
}

/// The longest formula that begins at `start` and ends with a word.
static Formula longestFormula(StringRef words, size_t start, size_t &end) {
  for (end = words.size(); end > start; --end) {
    bool endsWord = end == words.size() || !llvm::isAlnum(words[end]) || !llvm::isAlnum(words[end - 1]);
    StringRef after = words.drop_front(end).ltrim();
    bool goesOn = !after.empty() && StringRef("[](){}+-*/%^<>=?:").contains(after[0]);
    if (!endsWord || goesOn || llvm::isSpace(words[end - 1]))
      continue;
    if (Formula formula = asFormula(words.slice(start, end)))
      return formula;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// What it means
//===----------------------------------------------------------------------===//

static void collectNumbers(const FormulaNode &formula, std::vector<double> &numbers) {
  if (formula.kind == FormulaNode::Kind::Number)
    numbers.push_back(evaluate(formula, {}));
  for (const Formula &operand : formula.operands)
    collectNumbers(*operand, numbers);
}

namespace {

/// Looks for an assignment of the asked formula's names and numbers to a stage's.
class Matcher {
public:
  Matcher(const FormulaNode &asked) : asked(asked), names(namesIn(asked)) {
    collectNumbers(asked, numbers);
    std::mt19937 random(1);
    for (size_t i = 0; i < 6; ++i) // positive ones first: logarithms and roots
      for (const std::string &name : names)
        points[i][name] = (i < 3 ? 0.1 : -2.0) + double(random() % 1000) / (i < 3 ? 500 : 250);
  }

  /// `constants`: which names are constants of the stage.
  bool matches(const Operation &stage, const std::set<std::string> &constantNames) {
    scalars = constantNames;
    std::string text;
    for (char c : stage.expression)
      if (c != '$' && c != '{' && c != '}')
        text += c;
    llvm::Expected<Formula> parsed = parseFormula(text);
    if (!parsed) {
      llvm::consumeError(parsed.takeError());
      return false;
    }
    own = std::move(*parsed);
    arrays = {"v"};
    for (const Operand &operand : stage.operands)
      arrays.push_back(operand.name);
    reals = stage.reals;
    return names.size() <= arrays.size() + reals.size() && assignArrays(0);
  }

  Options constants; ///< of the stage that matched

private:
  bool assignArrays(size_t at) {
    if (at == arrays.size())
      return assignReals(0);
    for (const std::string &name : names) {
      if (scalars.count(name) || taken.count(name))
        continue;
      taken.insert(name);
      from[arrays[at]] = name;
      if (assignArrays(at + 1))
        return true;
      taken.erase(name);
    }
    return false;
  }

  bool assignReals(size_t at) {
    if (at == reals.size())
      return taken.size() == names.size() && hasSameValues();
    const std::string &real = reals[at].name;
    for (double number : numbers)
      for (double value : {number, -number, 1 / number}) {
        fixed[real] = value;
        constants[real] = shortestNumber(value);
        if (assignReals(at + 1))
          return true;
      }
    fixed.erase(real);
    constants.erase(real);
    for (const std::string &name : scalars) { // a constant without a value
      if (!taken.insert(name).second)
        continue;
      from[real] = name;
      if (assignReals(at + 1))
        return true;
      taken.erase(name);
      from.erase(real);
    }
    return false;
  }

  bool hasSameValues() const {
    unsigned compared = 0;
    for (const std::map<std::string, double> &point : points) {
      std::map<std::string, double> values = fixed;
      for (const auto &[slot, name] : from)
        values[slot] = point.at(name);
      double want = evaluate(asked, point), got = evaluate(*own, values);
      if (std::isnan(want) && std::isnan(got))
        continue;
      if (!(std::fabs(want - got) <= 1e-9 * (1 + std::fabs(want))))
        return false;
      ++compared;
    }
    return compared >= 2;
  }

  const FormulaNode &asked;
  std::set<std::string> scalars;
  std::vector<std::string> names;
  std::vector<double> numbers;
  std::map<std::string, double> points[6];
  Formula own;
  std::vector<std::string> arrays;
  std::vector<Real> reals;
  std::set<std::string> taken;
  std::map<std::string, std::string> from;
  std::map<std::string, double> fixed;
};

} // namespace

/// Beside x, y and z the letters a, b and c are constants; alpha and beta always are.
static std::set<std::string> usualScalars(const FormulaNode &formula) {
  std::vector<std::string> names = namesIn(formula);
  bool hasVector =
      llvm::any_of(names, [](const std::string &name) { return name == "x" || name == "y" || name == "z"; });
  std::set<std::string> result;
  for (const std::string &name : names)
    if (name == "alpha" || name == "beta" || (hasVector && (name == "a" || name == "b" || name == "c")))
      result.insert(name);
  return result;
}

/// "2x" is "2*x".
static std::string withProducts(StringRef text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    bool isSingle = i + 1 >= text.size() || !llvm::isAlnum(text[i + 1]);
    bool isFactor = i > 0 && llvm::isDigit(text[i - 1]) && llvm::isLower(text[i]) && isSingle;
    result += isFactor ? "*" : "";
    result += text[i];
  }
  return result;
}

std::optional<FormulaMatch> optiml::gen::matchFormula(StringRef words, const Library &library) {
  constexpr size_t longest = 2000; // of what is looked at
  std::string lower = withProducts(words.take_front(longest));
  size_t equals = StringRef(lower).find('='), end = 0;
  // At the start, perhaps behind a verb, or behind "=".
  std::vector<size_t> starts = {0, lower.find(' ')};
  if (equals != std::string::npos && equals > 0 && !StringRef("+-*/<>!").contains(lower[equals - 1]))
    starts.push_back(equals + 1);
  Formula formula;
  for (size_t start : starts)
    if (!formula && start < lower.size())
      formula = longestFormula(lower, start, end);
  if (!formula || namesIn(*formula).size() > 4)
    return std::nullopt;
  for (const std::set<std::string> &scalars : {usualScalars(*formula), std::set<std::string>()})
    for (const Operation &op : library.operations()) {
      Matcher matcher(*formula);
      if (op.isStage && matcher.matches(op, scalars))
        return FormulaMatch{{op.name, "", matcher.constants, {}, {}}, lower.substr(end)};
    }
  return std::nullopt;
}
