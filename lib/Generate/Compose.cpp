//===- Compose.cpp - what is done step by step, as one operation -----------===//
//
// "for every row, subtract the maximum, exponentiate, divide by the sum", "square every entry, add each row up, take
// roots", "the mean of the squared differences of two arrays": a request that says steps or nested functions, and nothing
// else, is composed to one formula, and the operation of the library with the same values (with element-wise stages
// before and after it) is written in its place. Every word must have its part in it: where one has none, the request is
// left as it is. What is said completely in this way but means nothing of the library must not be read as anything less.
//
//===----------------------------------------------------------------------===//
#include "ComposeSteps.h"
#include "SpokenWords.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

/// Recursive descent over the words of a whole request.
class Composer : public SpokenWords {
public:
  using SpokenWords::SpokenWords;

  std::optional<Composition> request() {
    lead();
    bool isPhrase = false;
    do {
      while (scope() || separator()) {
      }
      if (at == words.size())
        break;
      size_t before = result.steps.size();
      if (take({"after"}) || take({"once"})) { // "sum after squaring"
        std::vector<Step> later = std::move(result.steps);
        result.steps.clear();
        if (later.empty() || !steps() || at != words.size())
          return std::nullopt;
        result.steps.insert(result.steps.end(), later.begin(), later.end());
        break;
      }
      if (verb()) {
        tail();
      } else if (!before && !isPhrase && noun()) {
        isPhrase = true;
        tail();
      } else
        return std::nullopt;
    } while (at < words.size() && (atSeparator() || atAfter()));
    while (separator()) {
    }
    if (at != words.size() || isContradictory || result.steps.empty())
      return std::nullopt;
    result.inputs = inputs;
    return std::move(result);
  }

private:
  bool atSeparator() const {
    static const Set separators = {",", ";", ".", ":", "then", "and", "finally", "afterwards", "next", "before", "followed"};
    return separators.count(raw()) != 0;
  }
  bool atAfter() const { return raw() == "after" || raw() == "once"; }
  bool separator() {
    static const Set words = {",", ";", ".", ":", "then", "and", "finally", "afterwards", "next", "first", "before", "result"};
    if (take({"after", "that"}) || take({"followed", "by"}) || take({"of", "the", "result"}))
      return true;
    return raw() != "result" && takeAny(words);
  }
  void setAxis(StringRef axis) {
    isContradictory |= !result.axis.empty() && result.axis != axis;
    result.axis = axis.str();
  }
  /// "for every row", "per column", "row by row".
  bool scope() {
    size_t before = at;
    static const Set leads = {"for", "in", "within", "on", "over", "along", "across", "inside"}, all = {"each", "all", "the"};
    bool isLed = takeAny(leads);
    bool isEach = take({"each"});
    if (isEach)
      take({"of", "the"});
    if (!isEach && isLed)
      isEach = take({"all"}) && (take({"the"}) || true);
    static const Set parts = {"row", "column"};
    if (at < words.size() && parts.count(text()) && (isEach || (raw(1) == "by" && text(2) == text()) || raw(1) == "wise" || (raw(1) == "-" && raw(2) == "wise"))) {
      bool isPhrase = raw(1) == "by" || raw(1) == "wise", isJoined = raw(1) == "-";
      if (!isPhrase && !isJoined && !isLed && before == at)
        return at = before, false;
      if (isEach && !isLed && !isScopeEnd(at + 1))
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
  bool isScopeEnd(size_t next) const { return next >= words.size() || words[next].raw == "," || words[next].raw == ":" || words[next].raw == "of" || words[next].raw == "in"; }

  /// "each entry", "it", "the values of every row": what a step works on; nothing is fine, too.
  bool object() {
    static const Set words = {"each",   "all",  "the",   "its",    "their",  "it",     "them",       "this",  "these",  "those", "element", "result",  "results",
                              "output", "of",   "input", "data",   "everything", "whole", "entire", "array", "vector", "matrix", "that", "resulting", "new", "current",
                              "list", "in", "components", "component", "own", "single", "tensor"};
    size_t before = at;
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
  /// "each logit": whatever the values are called.
  bool isNoun(size_t begin) {
    if (at == begin || words[at - 1].text != "each" || words[at].tells || words[at].number || raw().size() < 4 || !llvm::isAlpha(raw()[0]))
      return false;
    size_t before = at;
    bool isOperation = !function().empty() || !fold().empty();
    at = before;
    return !isOperation && !atSeparator();
  }

  /// A function of elements by its name: "square root", "absolute value".
  std::string function() {
    static const std::map<StringRef, StringRef> names = {
        {"log", "log"}, {"logarithm", "log"}, {"exp", "exp"}, {"exponential", "exp"}, {"sqrt", "sqrt"}, {"root", "sqrt"}, {"absolute", "abs"},
        {"magnitude", "abs"}, {"reciprocal", "1/"}, {"square", "square"}, {"cub", "cube"}, {"cube", "cube"}, {"sigmoid", "sigmoid"}, {"tanh", "tanh"},
        {"sin", "sin"}, {"cos", "cos"}};
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
  /// What makes one number of many: "sum", "largest value", "euclidean norm".
  std::string fold() {
    static const std::map<StringRef, StringRef> names = {{"sum", "sum"}, {"max", "max"}, {"min", "min"}, {"mean", "mean"}, {"product", "prod"},
                                                         {"variance", "var"}, {"norm", "norm"}, {"length", "norm"}, {"std", "std"}, {"rms", "rms"}};
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

  /// "the sum", "its own mean", "the square root of the sum of the squares": of the values that there are.
  std::optional<std::vector<Step>> aggregate() {
    std::vector<Step> outer = std::move(result.steps);
    result.steps.clear();
    bool is = noun();
    std::vector<Step> inner = std::move(result.steps);
    result.steps = std::move(outer);
    bool folds = is && llvm::any_of(inner, [](const Step &step) { return step.folds; });
    return folds ? std::optional(inner) : std::nullopt;
  }
  /// The right side of "divide by", "subtract".
  bool operand(char sign) {
    size_t before = at;
    take({"a", "constant"}) || take({"the", "constant"}) || take({"the", "number"}) || take({"constant"});
    if (at < words.size() && words[at].number && text(1) != "array" && text(1) != "vector") {
      result.steps.push_back(withNumber(sign, *words[at++].number));
      return true;
    }
    at = before;
    if (sign == '*' && take({"itself"})) {
      result.steps.push_back(applying("square"));
      return true;
    }
    static const Set another = {"another", "second", "other"};
    size_t behind = at + (raw() == "the" || raw() == "a");
    if (behind < words.size() && another.count(words[behind].raw)) {
      at = behind + 1;
      static const Set nouns = {"array", "vector", "one", "matrix"};
      if (takeAny(nouns) && !take({"of"})) {
        result.steps.push_back(withArray(sign));
        return true;
      }
      return at = before, false;
    }
    bool isOwn = (raw() == "its" || raw() == "their"); // "multiply each value by its sigmoid"
    if (std::optional<std::vector<Step>> steps = aggregate()) {
      result.steps.push_back(withAggregate(sign, std::move(*steps)));
      return true;
    }
    at = before;
    if (isOwn) {
      ++at;
      take({"own"});
      if (std::string name = function(); !name.empty()) {
        result.steps.push_back(withAggregate(sign, {applying(name)}));
        return true;
      }
    }
    return at = before, false;
  }

  /// "subtract two float arrays", "multiply x and y entry by entry".
  bool both(char sign) {
    size_t before = at;
    unsigned arrays = inputs;
    take({"the"});
    take({"corresponding"});
    if (take({"element"}))
      take({"of"});
    if (at > 0 && bothInputs()) {
      take({"elementwise"}) || take({"element", "wise"}) || take({"element", "by", "element"}) || take({"position", "by", "position"}) || take({"pairwise"});
      result.steps.push_back(withArray(sign));
      return true;
    }
    inputs = arrays;
    return at = before, false;
  }

  bool steps() {
    do {
      while (separator() || scope()) {
      }
      if (at == words.size())
        return true;
      if (!verb())
        return false;
      tail();
    } while (atSeparator());
    return true;
  }
  bool verb() {
    size_t before = at, count = result.steps.size();
    auto push = [&](Step step) { result.steps.push_back(std::move(step)); };
    auto undo = [&] {
      at = before;
      result.steps.resize(count);
      return false;
    };
    if (raw() == "minus" || raw() == "plus" || raw() == "difference" || raw() == "differences" || raw() == "quotient" || raw() == "ratio" ||
        raw() == "times" || raw() == "multiplication" || raw() == "addition" || raw() == "division")
      return false;
    std::string first = text();
    static const Set takes = {"tak", "apply", "form", "comput", "calculat", "find", "keep", "return", "determin", "us", "get"};
    if (takes.count(first) && raw(1) != "away") {
      ++at;
      size_t after = at;
      take({"the"}) || take({"their"}) || take({"its"}) || take({"a"});
      if (std::string name = function(); !name.empty()) {
        take({"function"});
        if (take({"of", "the", "result"}) || take({"of", "it"}) || take({"of", "that", "sum"}) || take({"of", "that"}) || take({"to"}) || take({"of"}) || true)
          object();
        // "take the square root of the sum" is one phrase.
        if (fold().empty()) {
          push(applying(name));
          return true;
        }
      }
      at = after;
      return noun() || undo();
    }
    if (std::string name = first == "square" || first == "exp" || first == "log" ? first : std::string(); !name.empty()) {
      static const Set nounForms = {"squares", "exponential", "exponentials", "logarithm", "logarithms", "log", "logs"};
      if (nounForms.count(raw()) || (first == "square" && (raw(1) == "root" || raw(1) == "roots" || raw(1) == "matrix")) ||
          (raw() == "squared" && count == 0) || raw(1) == "of")
        return false;
      ++at;
      object();
      push(applying(name));
      return true;
    }
    if (first == "negat") {
      ++at;
      object();
      push(applying("-"));
      return true;
    }
    if (first == "exponentiat") {
      ++at;
      object();
      push(applying("exp"));
      return true;
    }
    if (take({"raise"}) || take({"rais"})) {
      object();
      if ((take({"to", "the", "power", "of"}) || take({"to", "the", "power"}) || take({"to", "power"})) && at < words.size() && words[at].number) {
        push(withNumber('^', *words[at++].number));
        return true;
      }
      return undo();
    }
    if (first == "sum" || first == "mean" || (first == "accumulat")) {
      static const Set nounForms = {"mean", "means", "averages", "total", "totals", "sums"};
      bool isVerb = !nounForms.count(raw()) && raw(1) != "of" && at + 1 < words.size();
      isVerb |= count && (raw() == "averaged" || raw() == "summed");
      if ((raw() == "sum" || raw() == "average") && at + 1 < words.size() && atBreak(1))
        isVerb = count != 0;
      if (raw() == "sum" && at + 1 == words.size())
        isVerb = count != 0;
      if (!isVerb)
        return false;
      ++at;
      take({"up"});
      if (!functions())
        object();
      take({"up"}) || take({"together"});
      push(folding(first == "mean" ? "mean" : "sum"));
      return true;
    }
    if (first == "add" || (first == "multiply" && raw() != "times")) {
      ++at;
      take({"up"});
      size_t after = at;
      bool isUp = words[after - 1].raw == "up", isOfThose = functions();
      if (isOfThose && first == "add" && raw() != "to" && (at == words.size() || atBreak(0) || startsTail()))
        isUp = true; // "add the squares of all elements"
      if (isOfThose && !isUp && raw() != "up" && raw() != "together") {
        result.steps.resize(count);
        at = after, isOfThose = false;
      }
      if (!isOfThose)
        object();
      static const Set all = {"them", "everything", "all"};
      bool isAll = take({"up"}) || take({"together"}) || isUp || (count && all.count(last()) && (at == words.size() || atBreak(0)));
      if (isAll) {
        push(folding(first == "add" ? "sum" : "prod"));
        return true;
      }
      if (first == "multiply" && (take({"by"}) || take({"with"})))
        return operand('*') || undo();
      at = after;
      if (first == "multiply" && both('*'))
        return true;
      at = after;
      if (first == "add" && operand('+')) {
        if (take({"to"}))
          object();
        return true;
      }
      return undo();
    }
    if (!count && (first == "divide" || first == "multiply" || first == "subtract")) { // "divide the sum by the maximum"
      ++at;
      std::optional<std::vector<Step>> one = aggregate(), other;
      if (one && (take({"by"}) || take({"with"}) || take({"from"})) && (other = aggregate())) {
        push(together(first == "divide" ? '/' : first == "multiply" ? '*' : '-', std::move(*one), std::move(*other)));
        return true;
      }
      at = before;
    }
    if (first == "divide" || first == "normaliz") {
      ++at;
      object();
      return (take({"by"}) && operand('/')) || undo();
    }
    if (first == "subtract" && ++at && both('-'))
      return true;
    at = before;
    bool isLed = take({"from"}); // "from each value subtract the mean"
    if (isLed)
      object();
    if (take({"subtract"}) || take({"take", "away"}) || take({"remov"})) {
      if (!isLed && raw() == "from" && (isLed = true))
        ++at, object();
      if (!operand('-'))
        return undo();
      if (!isLed && take({"from"}))
        object();
      return true;
    }
    return undo();
  }
  bool atBreak(size_t ahead) const {
    static const Set breaks = {",", ";", ".", "then", "and", "finally", "of"};
    return breaks.count(raw(ahead)) != 0;
  }

  /// "the squares (of all elements)": what is added up.
  bool functions() {
    size_t before = at, count = result.steps.size();
    if (noun(1))
      return true;
    at = before;
    result.steps.resize(count);
    return false;
  }

  /// "the square root of the sum of the squares", "largest absolute value in each column".
  bool noun(unsigned depth = 0) {
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
    if (folds == "prod" && llvm::any_of(words, [](const Word &word) { return operands.count(word.raw) || operands.count(word.text); }))
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
    if (take({"of"}) || take({"over"}) || take({"in"}) || take({"among"}) || take({"from"}) || take({"between"}) || take({"across"})) {
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
    if (auto sign = signs.find(raw()); depth == 0 && sign != signs.end() && at + 1 < words.size() && words[at + 1].number && isLast(at + 1)) {
      result.steps.push_back(withNumber(sign->second, *words[at + 1].number));
      at += 2;
    } else if (depth == 0 && !folds.empty())
      combined();
    return true;
  }
  /// "… divided by the standard deviation": two numbers of the same values.
  void combined() {
    size_t before = at, count = kept.size();
    char sign = take({"divided", "by"}) || take({"over"}) ? '/' : take({"plus"}) ? '+' : take({"minus"}) ? '-' : take({"times"}) ? '*' : 0;
    std::optional<std::vector<Step>> other = sign ? aggregate() : std::nullopt;
    if (other) {
      result.steps = {together(sign, std::move(result.steps), std::move(*other))};
      return;
    }
    at = before;
    kept.resize(count);
  }
  bool isLast(size_t place) const { return place + 1 == words.size() || words[place + 1].raw == "," || words[place + 1].raw == "." || words[place + 1].raw == "then"; }
  /// "the (squared) differences of two arrays".
  bool inPair() {
    size_t before = at;
    take({"the"}) || take({"their"});
    std::string adjective = raw() == "squared" || raw() == "absolute" || raw() == "square" ? function() : std::string();
    if (raw() != "difference" && raw() != "differences")
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
  bool tailBetween() {
    if (raw() == "between")
      words[at].raw = "of";
    return tail();
  }

  Composition result;
  bool isContradictory = false;
};

} // namespace

std::string optiml::gen::compositionsInWords(StringRef request, const Library &library, const Vocabulary &vocabulary) {
  Composer composer(request, vocabulary);
  std::optional<Composition> composition = composer.request();
  if (!composition)
    return request.str();
  std::optional<std::string> words = meaningOf(*composition, library);
  if (!words)
    return request.str();
  return *words + composer.keptOf(request);
}
