//===- SpokenFormula.cpp - formulas that are said in words ----------------===//
//
// "one over one plus e to the minus x", "each value times its own sigmoid", "y becomes y plus 2 times x": the words are
// written as a formula, which then is evaluated like any other (Formula.h). What "over" and "of" reach to is not always
// clear; the reading that means an operation of the library counts.
//
//===----------------------------------------------------------------------===//
#include "Formula.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace optiml::gen;
using llvm::StringRef;

namespace {

struct Word {
  StringRef text;
  size_t begin = 0, end = 0;
};

llvm::SmallVector<Word, 64> wordsOf(StringRef text) {
  llvm::SmallVector<Word, 64> result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ' || text[i] == '\n') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    if (llvm::isAlpha(text[i]))
      while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '_'))
        ++end;
    else if (llvm::isDigit(text[i]))
      while (end < text.size() &&
             (llvm::isDigit(text[end]) || (text[end] == '.' && end + 1 < text.size() && llvm::isDigit(text[end + 1]))))
        ++end;
    result.push_back({text.slice(i, end), i, end});
    i = end;
  }
  return result;
}

/// How far operators reach: to all that comes, or to the next operand.
struct Reach {
  bool overLeft = false; ///< "x minus m over s" divides the difference
  bool overRight = true; ///< "one over one plus x" divides by the sum
  bool function = true;  ///< "log of one plus x" is that of the sum
};

/// Recursive descent over the words; empty where they are no formula.
class Speech {
public:
  Speech(llvm::ArrayRef<Word> words, Reach reach) : words(words), reach(reach) {}

  std::string statement() {
    size_t before = at;
    std::string target = variable();
    if (!target.empty() && (take({"becomes"}) || take({"is", "replaced", "by"}) || take({"is", "set", "to"}) ||
                            take({"gets"}) || take({"becomes", "equal", "to"}))) {
      std::string value = sum();
      if (!value.empty() && operators)
        return target + "[i] = " + value;
    }
    at = before;
    operators = spoken = 0;
    return sum();
  }
  size_t at = 0;
  unsigned operators = 0, spoken = 0, variables = 0, letters = 0;

private:
  bool take(std::initializer_list<StringRef> phrase) {
    if (at + phrase.size() > words.size())
      return false;
    size_t next = at;
    for (StringRef word : phrase)
      if (words[next++].text != word)
        return false;
    at = next;
    return true;
  }
  bool peek(StringRef word, size_t ahead = 0) const {
    return at + ahead < words.size() && words[at + ahead].text == word;
  }
  /// An operator in words or as a sign.
  bool binary(std::initializer_list<std::initializer_list<StringRef>> forms, StringRef sign) {
    if (take({sign})) {
      ++operators;
      return true;
    }
    size_t before = at;
    take({","});
    for (std::initializer_list<StringRef> form : forms)
      if (take(form)) {
        ++operators, ++spoken;
        return true;
      }
    at = before;
    return false;
  }
  using Part = std::string (Speech::*)();
  /// What follows an operator that begins at `before`. Empty: nothing does, and the operator is put back.
  std::string rightOf(Part part, size_t before) {
    std::string right = (this->*part)();
    if (right.empty()) {
      at = before;
      --operators;
    }
    return right;
  }
  std::string sum() {
    std::string left = quotient();
    while (!left.empty()) {
      size_t before = at;
      StringRef sign;
      if (binary({{"plus"}, {"added", "to"}, {"increased", "by"}}, "+"))
        sign = "+";
      else if (binary({{"minus"}, {"less"}, {"reduced", "by"}}, "-"))
        sign = "-";
      else
        break;
      std::string right = rightOf(&Speech::quotient, before);
      if (right.empty())
        break;
      left = "(" + left + " " + sign.str() + " " + right + ")";
      if (reach.overLeft && over()) {
        std::string divisor = reach.overRight ? sum() : product();
        if (divisor.empty())
          return "";
        left = "(" + left + " / " + divisor + ")";
      }
    }
    return left;
  }
  /// "over three (float) arrays".
  bool isCountOfArrays() const {
    static const llvm::StringSet<> counts = {"three", "four", "several", "many"},
                                   types = {"float", "double", "int", "half"};
    size_t noun = at + 2 + (at + 2 < words.size() && types.contains(words[at + 2].text));
    return counts.contains(words[at + 1].text) && noun < words.size() && isNoun(words[noun].text);
  }
  /// Not "over all elements", "over 2000 floats".
  bool over() {
    bool isRange =
        peek("over") && (peek("all", 1) || peek("each", 1) || peek("every", 1) || peek("two", 1) || peek("the", 1));
    bool isCount = peek("over") && at + 2 < words.size() && words[at + 2].text.size() > 1 &&
                   (llvm::isDigit(words[at + 1].text[0]) || isCountOfArrays());
    return !isRange && !isCount && binary({{"over"}, {"divided", "by"}}, "/");
  }
  std::string quotient() {
    std::string left = product();
    size_t before = at;
    if (left.empty() || !over())
      return left;
    std::string right = rightOf(reach.overRight ? &Speech::sum : &Speech::product, before);
    return right.empty() ? left : "(" + left + " / " + right + ")";
  }
  std::string product() {
    std::string left = unary();
    while (!left.empty()) {
      size_t before = at;
      if (!binary({{"times"}, {"multiplied", "by"}, {"multiplied", "with"}, {"times", "the"}}, "*"))
        break;
      std::string right = rightOf(&Speech::unary, before);
      if (right.empty())
        break;
      left = "(" + left + " * " + right + ")";
    }
    return left;
  }
  std::string unary() {
    if (take({"minus"}) || take({"negative"}) || take({"-"}) || take({"the", "negated"}) || take({"negated"})) {
      if (at < words.size() && isNoun(words[at].text)) // "the negated input"
        return ++at, ++variables, "(-" + (subject = "x") + ")";
      std::string operand = unary();
      return operand.empty() ? "" : "(-" + operand + ")";
    }
    std::string base = primary();
    while (!base.empty()) {
      if (take({"squared"})) {
        base = "(" + base + " * " + base + ")", ++operators, ++spoken;
      } else if (take({"cubed"})) {
        base = "(" + base + " * " + base + " * " + base + ")", ++operators, ++spoken;
      } else if (take({"to", "the", "power", "of"}) || take({"raised", "to", "the", "power", "of"}) ||
                 take({"to", "the", "power"}) || take({"raised", "to", "the"}) || take({"raised", "to"}) ||
                 take({"to", "the"})) {
        std::string exponent = unary();
        if (exponent.empty())
          return "";
        operators += base == "e";
        base = power(base, exponent), ++operators, ++spoken;
      } else if (take({"^"}) || take({"*", "*"})) {
        std::string exponent = unary();
        if (exponent.empty())
          return "";
        base = power(base, exponent), ++operators;
      } else
        break;
    }
    return base;
  }
  static std::string power(const std::string &base, const std::string &exponent) {
    return base == "e" ? "exp(" + exponent + ")" : "(" + base + " ^ " + exponent + ")";
  }
  /// "sigmoid", "natural logarithm": its name in formulas.
  std::string function() {
    static const std::map<StringRef, StringRef> names = {
        {"log", "log"},         {"ln", "log"},           {"logarithm", "log"},     {"exp", "exp"},
        {"exponential", "exp"}, {"sqrt", "sqrt"},        {"root", "sqrt"},         {"tanh", "tanh"},
        {"sigmoid", "sigmoid"}, {"logistic", "sigmoid"}, {"sin", "sin"},           {"sine", "sin"},
        {"cos", "cos"},         {"cosine", "cos"},       {"abs", "abs"},           {"magnitude", "abs"},
        {"reciprocal", "1/"},   {"square", "square"},    {"softplus", "softplus"}, {"cube", "cube"},
        {"sum", "sum"},         {"mean", "mean"},        {"average", "mean"},      {"erf", "erf"}};
    size_t before = at;
    take({"the"}) || take({"a"});
    if (take({"hyperbolic", "tangent"}))
      return "tanh";
    if (take({"absolute", "value"}))
      return "abs";
    if (take({"square", "root"}))
      return "sqrt";
    if (peek("cube") && peek("root", 1))
      return at = before, "";
    if (take({"multiplicative", "inverse"}))
      return "1/";
    take({"natural"}) || take({"standard"});
    if (at < words.size())
      if (auto name = names.find(words[at].text); name != names.end()) {
        ++at;
        take({"function"}) || take({"value"});
        return name->second.str();
      }
    at = before;
    return "";
  }
  static std::string apply(const std::string &name, const std::string &argument) {
    if (name == "1/")
      return "(1 / " + argument + ")";
    if (name == "square")
      return "(" + argument + " * " + argument + ")";
    if (name == "cube")
      return "(" + argument + " * " + argument + " * " + argument + ")";
    if (name == "softplus")
      return "log(1 + exp(" + argument + "))";
    return name + "(" + argument + ")";
  }
  std::string primary() {
    if (at >= words.size())
      return "";
    if (take({"("})) {
      std::string inner = sum();
      return !inner.empty() && take({")"}) ? inner : "";
    }
    size_t before = at;
    // "its own sigmoid"
    bool isOwn = (take({"its", "own"}) || take({"its"}) || take({"the", "value", "'", "s"})) && !subject.empty();
    if (std::string name = function(); !name.empty()) {
      ++operators;
      if (!peek("("))
        ++spoken;
      if (isOwn)
        return apply(name, subject);
      if (!subject.empty() && (take({"of", "itself"}) || take({"of", "it"})))
        return apply(name, subject);
      unsigned before = variables;
      if (peek("(")) {
        std::string inner = primary();
        return inner.empty() ? "" : apply(name, inner);
      }
      if (take({"of"}) || !peek("of")) {
        // "sigmoid of one array times another"
        bool isNoun = at + 1 < words.size() && Speech::isNoun(words[at + 1].text);
        std::string inner = reach.function && !isNoun ? sum() : unary();
        if (!inner.empty() && variables > before) // not the logarithm of one
          return apply(name, inner);
      }
      return "";
    }
    at = before;
    if (take({"multiply"}) || take({"multiplying"})) { // "multiply each value with its sigmoid"
      std::string left = unary();
      std::string right = !left.empty() && (take({"by"}) || take({"with"})) ? unary() : "";
      ++operators, ++spoken;
      return right.empty() ? "" : "(" + left + " * " + right + ")";
    }
    if (take({"itself"}))
      return subject;
    if (std::string number = this->number(); !number.empty())
      return number;
    for (StringRef scalar : {"alpha", "beta", "pi"})
      if (take({scalar}))
        return scalar.str();
    return variable();
  }
  std::string number() {
    static const std::map<StringRef, StringRef> names = {{"one", "1"},    {"two", "2"},  {"three", "3"},
                                                         {"four", "4"},   {"five", "5"}, {"six", "6"},
                                                         {"half", "0.5"}, {"zero", "0"}, {"ten", "10"}};
    if (at >= words.size())
      return "";
    StringRef word = words[at].text;
    auto name = names.find(word);
    bool isCount = at + 1 < words.size() && isNoun(words[at + 1].text); // "one vector"
    if (name != names.end() && !isCount) {
      ++at;
      return name->second.str();
    }
    if (!llvm::isDigit(word[0]))
      return "";
    ++at;
    return word.str();
  }
  static bool isNoun(StringRef word) {
    static const llvm::StringSet<> nouns = {"element", "elements", "value",   "values", "number", "numbers",
                                            "entry",   "entries",  "vector",  "array",  "item",   "input",
                                            "score",   "arrays",   "vectors", "inputs"};
    return nouns.contains(word);
  }
  /// "x", "x[i]", "each value", "another".
  std::string variable() {
    if (at >= words.size())
      return "";
    size_t before = at;
    StringRef word = words[at].text;
    static const StringRef names = "xyzabcpquvwte";
    static const llvm::StringSet<> behind = {"times",   "plus",       "minus",  "over", "squared", "cubed", "becomes",
                                             "divided", "multiplied", "+",      "-",    "*",       "/",     "^",
                                             ")",       "to",         "raised", "is",   "gets"};
    if (word.size() == 1 && names.contains(word[0])) {
      bool isArticle = word == "a" && at + 1 < words.size() && !behind.contains(words[at + 1].text);
      if (!isArticle) {
        ++at;
        if (take({"["}) &&
            !(at + 1 < words.size() && words[at].text.size() == 1 && words[at + 1].text == "]" && (at += 2))) {
          at = before;
          return "";
        }
        if (word != "e") {
          ++variables, ++letters;
          subject = word.str();
        }
        return word.str();
      }
    }
    bool isAll = take({"each", "of", "the"}) || take({"each"}) || take({"every"}) || take({"the"}) || take({"one"}) ||
                 take({"all"}) || take({"a"});
    if (isAll && at < words.size() && isNoun(words[at].text)) {
      ++at;
      ++variables;
      // "one vector plus another" are two.
      return subject = "x";
    }
    at = before;
    if (take({"the", "first"})) {
      static const llvm::StringSet<> arrays = {"array", "vector", "input", "one"};
      bool isArray = at < words.size() && arrays.contains(words[at].text);
      at += isArray;
      if (words[at - 1].text != "one" && (isArray || (at < words.size() && behind.contains(words[at].text)))) {
        ++variables;
        return subject = "x";
      }
      at = before;
    }
    if (take({"another"}) || take({"a", "second"}) || take({"the", "other"}) || take({"a", "different"}) ||
        take({"the", "second"})) {
      if (at < words.size() && isNoun(words[at].text))
        ++at;
      ++variables;
      return subject = "y";
    }
    return "";
  }

  llvm::ArrayRef<Word> words;
  Reach reach;
  std::string subject; ///< what "its" and "itself" are of
};

/// "sum(2 * x)" and nothing else.
bool isOneReduction(StringRef formula) {
  if (!formula.starts_with("sum(") && !formula.starts_with("mean("))
    return false;
  unsigned depth = 0;
  for (size_t i = 0; i < formula.size(); ++i) {
    depth += formula[i] == '(';
    depth -= formula[i] == ')';
    if (formula[i] == ')' && !depth)
      return i + 1 == formula.size() && formula.drop_front().find("sum(") == StringRef::npos;
  }
  return false;
}

} // namespace

std::string optiml::gen::spokenFormulas(StringRef text, const Library &library) {
  std::string lower = text.lower();
  llvm::SmallVector<Word, 64> words = wordsOf(lower);
  for (size_t first = 0; first < words.size(); ++first) {
    size_t open = 0; // the end of a formula that means nothing here
    // A formula starts where a clause does, or behind a word that introduces it.
    for (Reach reach : {Reach{}, Reach{false, true, false}, Reach{true, true, true}, Reach{false, false, true},
                        Reach{false, false, false}}) {
      Speech speech(llvm::ArrayRef(words).drop_front(first), reach);
      std::string formula = speech.statement();
      if (formula.empty() || !speech.spoken || speech.operators < 2 || !speech.variables)
        continue;
      size_t last = first + speech.at - 1;
      StringRef original = text.slice(words[first].begin, words[last].end);
      bool hasMatrix = false; // "A times x plus y"
      for (size_t at = first; at <= last; ++at)
        hasMatrix |= words[at].text.size() == 1 && llvm::isUpper(text[words[at].begin]);
      if (hasMatrix || StringRef(lower).contains("matri") || original.contains("time step"))
        continue;
      // "sum of 3 x" is said in plain words.
      if (isOneReduction(formula)) {
        open = 0;
        break;
      }
      bool isWhole = formula.find('=') != std::string::npos || formula.find("sum(") != std::string::npos ||
                     formula.find("mean(") != std::string::npos;
      if (!isWhole)
        formula = "r[i] = " + formula;
      std::string said = formulasInWords(formula, library);
      if (said == formula || StringRef(said).contains(" formula ")) {
        if (speech.letters && speech.at > 4 && last > open)
          open = last;
        continue;
      }
      return text.take_front(words[first].begin).str() + said + spokenFormulas(text.substr(words[last].end), library);
    }
    // "x cubed plus x squared": it must not be read as anything less.
    if (open)
      return text.take_front(words[first].begin).str() + " formula " +
             spokenFormulas(text.substr(words[open].end), library);
  }
  return text.str();
}
