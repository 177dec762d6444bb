//===- Compose.cpp - what is done step by step, as one operation -----------===//
//
// "for every row, subtract the maximum, exponentiate, divide by the sum", "square every entry, add each row up, take
// roots", "the mean of the squared differences of two arrays": a request that says steps or nested functions, and
// nothing else, is composed to one formula, and the operation of the library with the same values (with element-wise
// stages before and after it) is written in its place. Every word must have its part in it: where one has none, the
// request is left as it is. What is said completely in this way but means nothing of the library must not be read as
// anything less.
//
//===----------------------------------------------------------------------===//
#include "ComposeNouns.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

/// Recursive descent over the words of a whole request.
class Composer : public ComposedNouns {
public:
  using ComposedNouns::ComposedNouns;

  std::optional<Composition> request() {
    lead();
    bool isPhrase = false;
    do {
      while (scope() || separator() || bareTail()) {
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
    result.isOfMatrix = llvm::any_of(words, [](const Word &word) { return word.text == "matrix"; });
    return std::move(result);
  }

private:
  /// The right side of "divide by", "subtract".
  bool operand(char sign) {
    size_t before = at;
    take({"a", "constant"}) || take({"the", "constant"}) || take({"the", "number"}) || take({"constant"});
    if (at < words.size() && words[at].number && text(1) != "array" && text(1) != "vector") {
      result.steps.push_back(withNumber(sign, *words[at++].number));
      return true;
    }
    at = before;
    if (!result.steps.empty() && !result.steps.back().fold.empty()) { // "sum, and divide each entry by that sum"
      std::string name = result.steps.back().fold;
      static const Set these = {"that", "this", "the", "its"};
      if (takeAny(these) && fold() == name) {
        result.steps.back() = withAggregate(sign, {folding(name)});
        return true;
      }
      at = before;
    }
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
      take({"elementwise"}) || take({"element", "wise"}) || take({"element", "by", "element"}) ||
          take({"position", "by", "position"}) || take({"pairwise"});
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
    if (raw() == "minus" || raw() == "plus" || raw() == "difference" || raw() == "differences" || raw() == "quotient" ||
        raw() == "ratio" || raw() == "times" || raw() == "multiplication" || raw() == "addition" || raw() == "division")
      return false;
    std::string first = text();
    static const Set takes = {"tak",  "apply",  "form",     "comput", "calculat", "find",
                              "keep", "return", "determin", "us",     "get"};
    if (takes.count(first) && raw(1) != "away") {
      ++at;
      size_t after = at;
      take({"the"}) || take({"their"}) || take({"its"}) || take({"a"});
      if (std::string name = function(); !name.empty()) {
        take({"function"});
        if (take({"of", "the", "result"}) || take({"of", "it"}) || take({"of", "that", "sum"}) ||
            take({"of", "that"}) || take({"to"}) || take({"of"}) || true)
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
    if (std::string name = first == "square" || first == "exp" || first == "log" ? first : std::string();
        !name.empty()) {
      static const Set nounForms = {"squares", "exponential", "exponentials", "logarithm", "logarithms", "log", "logs"};
      if (nounForms.count(raw()) ||
          (first == "square" && (raw(1) == "root" || raw(1) == "roots" || raw(1) == "matrix")) ||
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
      if ((take({"to", "the", "power", "of"}) || take({"to", "the", "power"}) || take({"to", "power"})) &&
          at < words.size() && words[at].number) {
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
      bool isAll = take({"up"}) || take({"together"}) || isUp ||
                   (count && all.count(last()) && (at == words.size() || atBreak(0)));
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
    if (!count &&
        (first == "divide" || first == "multiply" || first == "subtract")) { // "divide the sum by the maximum"
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
      tail();
      return ((take({"by"}) || take({"with"})) && operand('/')) || undo();
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
    // "square, mean, root": steps by their names alone
    if (size_t place = at; count && result.steps.size() == count) {
      bool mayFold = llvm::none_of(result.steps, [](const Step &step) { return step.folds; });
      std::string name = mayFold ? fold() : std::string(), element = name.empty() ? function() : std::string();
      if ((!name.empty() || !element.empty()) && (at == words.size() || (atBreak(0) && raw() != "of"))) {
        push(name.empty() ? applying(element) : folding(name));
        return true;
      }
      at = place;
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
