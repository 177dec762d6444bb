//===- ComposeNouns.cpp - what is named of the values ----------------------===//
#include "ComposeNouns.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

bool ComposedNouns::atSeparator() const {
  static const Set separators = {",",       ";",          ".",    ":",      "then",    "and",
                                 "finally", "afterwards", "next", "before", "followed"};
  return separators.count(raw()) != 0;
}

bool ComposedNouns::atAfter() const { return raw() == "after" || raw() == "once"; }

bool ComposedNouns::separator() {
  static const Set words = {",", ";", ".", ":", "then", "and", "finally", "afterwards", "next", "first", "before"};
  if (take({"after", "that"}) || take({"followed", "by"}) || take({"of", "the", "result"}))
    return true;
  return takeAny(words);
}

void ComposedNouns::setAxis(StringRef axis) {
  isContradictory |= !result.axis.empty() && result.axis != axis;
  result.axis = axis.str();
}

bool ComposedNouns::scope() {
  size_t before = at;
  static const Set leads = {"for", "in", "within", "on", "over", "along", "across", "inside"};
  bool isLed = takeAny(leads);
  bool isEach = take({"each"});
  bool isHyphened = isEach && take({"-"}); // "per-column mean"
  if (isEach)
    take({"of", "the"});
  if (!isEach && isLed)
    isEach = take({"all"}) && (take({"the"}) || true);
  static const Set parts = {"row", "column"};
  if (at < words.size() && parts.count(text()) &&
      (isEach || (raw(1) == "by" && text(2) == text()) || raw(1) == "wise" || (raw(1) == "-" && raw(2) == "wise"))) {
    bool isPhrase = raw(1) == "by" || raw(1) == "wise", isJoined = raw(1) == "-";
    if (!isPhrase && !isJoined && !isLed && before == at)
      return at = before, false;
    if (isEach && !isLed && !isHyphened && !isScopeEnd(at + 1))
      return at = before, false;
    setAxis(text());
    at += isJoined ? 3 : raw(1) == "by" ? 3 : isPhrase ? 2 : 1;
    take({"separately"}) || take({"independently"}) || take({"by", "itself"});
    tail();
    return true;
  }
  at = before;
  return false;
}

bool ComposedNouns::isScopeEnd(size_t next) const {
  return next >= words.size() || words[next].raw == "," || words[next].raw == ":" || words[next].raw == "of" ||
         words[next].raw == "in";
}

bool ComposedNouns::object() {
  static const Set words = {"each",   "all",        "the",       "its",        "their",  "it",      "them",
                            "this",   "these",      "those",     "element",    "result", "results", "output",
                            "of",     "input",      "data",      "everything", "whole",  "entire",  "array",
                            "vector", "matrix",     "that",      "resulting",  "new",    "current", "list",
                            "in",     "components", "component", "own",        "single", "tensor"};
  size_t before = at;
  static const Set types = {"floats", "doubles", "ints", "integers", "halfs", "halves"};
  if (!raw().empty() && llvm::isDigit(raw()[0]) && types.count(raw(1)) && readTail(at)) // "divide 1000 floats by"
    return true;
  while (at < this->words.size()) {
    bool isAxis = (text() == "row" || text() == "column") && at > before;
    if (isAxis) {
      setAxis(text());
      ++at;
      if (take({"'", "s"}) || take({"’", "s"}))
        continue;
      continue;
    }
    if ((raw() == "of" || raw() == "in") && startsTail())
      break;
    if (!words.count(raw()) && !words.count(text()) && !isNoun(before))
      break;
    ++at;
  }
  while (at > before && (raw(size_t(-1)) == "of" || raw(size_t(-1)) == "in" || raw(size_t(-1)) == "the"))
    --at;
  return at > before;
}

bool ComposedNouns::isNoun(size_t begin) {
  if (at == begin || words[at - 1].text != "each" || words[at].tells || words[at].number || raw().size() < 4 ||
      !llvm::isAlpha(raw()[0]))
    return false;
  size_t before = at;
  bool isOperation = !function().empty() || !fold().empty();
  at = before;
  return !isOperation && !atSeparator();
}

std::string ComposedNouns::function() {
  static const std::map<StringRef, StringRef> names = {
      {"log", "log"},         {"logarithm", "log"}, {"exp", "exp"},      {"exponential", "exp"},
      {"sqrt", "sqrt"},       {"root", "sqrt"},     {"absolute", "abs"}, {"magnitude", "abs"},
      {"reciprocal", "1/"},   {"square", "square"}, {"cub", "cube"},     {"cube", "cube"},
      {"sigmoid", "sigmoid"}, {"tanh", "tanh"},     {"sin", "sin"},      {"cos", "cos"}};
  size_t before = at;
  take({"natural"});
  if ((raw() == "square" || text() == "square") && (raw(1) == "root" || raw(1) == "roots"))
    return at += 2, "sqrt";
  if (raw() == "cube")
    return at = before, "";
  auto name = names.find(text());
  if (name == names.end())
    return at = before, "";
  ++at;
  if (name->second == "abs")
    take({"value"}) || take({"values"});
  return name->second.str();
}

std::string ComposedNouns::fold() {
  static const std::map<StringRef, StringRef> names = {
      {"sum", "sum"},      {"max", "max"},   {"min", "min"},     {"mean", "mean"}, {"product", "prod"},
      {"variance", "var"}, {"norm", "norm"}, {"length", "norm"}, {"std", "std"},   {"rms", "rms"}};
  size_t before = at;
  static const Set kinds = {"arithmetic", "euclidean", "l2", "grand", "overall"};
  if (take({"standard", "deviation"}))
    return "std";
  if (take({"root", "mean", "square"}) || (text() == "sqrt" && text(1) == "mean" && text(2) == "square" && (at += 3)))
    return "rms";
  takeAny(kinds);
  auto name = names.find(text());
  if (name == names.end() || raw() == "times")
    return at = before, "";
  ++at;
  return name->second.str();
}

std::optional<std::vector<Step>> ComposedNouns::aggregate() {
  std::vector<Step> outer = std::move(result.steps);
  result.steps.clear();
  bool is = noun();
  std::vector<Step> inner = std::move(result.steps);
  result.steps = std::move(outer);
  bool folds = is && llvm::any_of(inner, [](const Step &step) { return step.folds; });
  return folds ? std::optional(inner) : std::nullopt;
}

bool ComposedNouns::noun(unsigned depth) {
  size_t before = at;
  static const Set articles = {"the", "a", "an", "its", "their", "own", "that", "this"};
  auto none = [&] { return at = before, false; };
  if (depth > 4)
    return false;
  if (depth == 0 && inPair())
    return true;
  while (takeAny(articles)) {
  }
  if ((text() == "row" || text() == "column") && at + 1 < words.size()) { // "row sum", "the row's total"
    size_t word = at++;
    take({"'", "s"}) || take({"’", "s"});
    if (fold().empty())
      return none();
    at = word + 1;
    take({"'", "s"}) || take({"’", "s"});
    setAxis(words[word].text);
  }
  std::string folds = fold();
  std::string name = folds.empty() ? function() : std::string();
  if (folds.empty() && name.empty())
    return none();
  static const Set operands = {"matrix", "vector", "two", "and"}; // "the product of a matrix and a vector"
  if (folds == "prod" &&
      llvm::any_of(words, [](const Word &word) { return operands.count(word.raw) || operands.count(word.text); }))
    return none();
  if (!folds.empty())
    take({"value"}) || take({"entry"}) || take({"element"}) || take({"number"});
  // "largest absolute value", "mean squared difference"
  std::vector<std::string> inner;
  if (!folds.empty() && (raw() == "absolute" || raw() == "squared" || raw() == "square"))
    if (std::string adjective = function(); !adjective.empty()) {
      inner.push_back(adjective);
      take({"value"}) || take({"entry"}) || take({"element"});
    }
  size_t link = at;
  if (take({"of"}) || take({"over"}) || take({"in"}) || take({"among"}) || take({"from"}) || take({"between"}) ||
      take({"across"})) {
    if (!inPair() && !noun(depth + 1)) {
      at = link;
      if (!tail()) {
        ++at;
        if (scope() || object())
          tail();
        else
          at = link;
      }
    }
  }
  for (const std::string &one : inner)
    result.steps.push_back(applying(one));
  result.steps.push_back(folds.empty() ? applying(name) : folding(folds));
  // "the mean of an array plus one"
  static const std::map<StringRef, char> signs = {{"plus", '+'}, {"minus", '-'}, {"times", '*'}};
  if (auto sign = signs.find(raw());
      depth == 0 && sign != signs.end() && at + 1 < words.size() && words[at + 1].number && isLast(at + 1)) {
    result.steps.push_back(withNumber(sign->second, *words[at + 1].number));
    at += 2;
  } else if (depth == 0 && !folds.empty())
    combined();
  return true;
}

void ComposedNouns::combined() {
  size_t before = at, count = kept.size();
  char sign = take({"divided", "by"}) || take({"over"}) ? '/'
              : take({"plus"})                          ? '+'
              : take({"minus"})                         ? '-'
              : take({"times"})                         ? '*'
                                                        : 0;
  std::optional<std::vector<Step>> other = sign ? aggregate() : std::nullopt;
  if (other) {
    result.steps = {together(sign, std::move(result.steps), std::move(*other))};
    return;
  }
  at = before;
  kept.resize(count);
}

bool ComposedNouns::isLast(size_t place) const {
  return place + 1 == words.size() || words[place + 1].raw == "," || words[place + 1].raw == "." ||
         words[place + 1].raw == "then";
}

bool ComposedNouns::inPair() {
  size_t before = at;
  take({"the"}) || take({"their"});
  std::string adjective = raw() == "squared" || raw() == "absolute" || raw() == "square" ? function() : std::string();
  static const Set differences = {"difference", "differences", "residual", "residuals", "errors", "deviations"};
  if (!differences.count(raw()))
    return at = before, false;
  ++at;
  size_t kinds = at;
  if (!take({"of"}) && !take({"between"}))
    return at = before, false;
  at = kinds;
  unsigned count = inputs;
  if (!tailBetween() || inputs != 2) {
    inputs = count;
    return at = before, false;
  }
  result.steps.push_back(withArray('-'));
  if (!adjective.empty())
    result.steps.push_back(applying(adjective));
  return true;
}

bool ComposedNouns::tailBetween() {
  if (raw() == "between")
    words[at].raw = "of";
  return tail();
}
