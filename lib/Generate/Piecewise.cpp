//===- Piecewise.cpp - values of several kinds -----------------------------===//
//
// "negative values become zero, the rest stays", "1 where the value is above 0.5, 0 elsewhere", "multiply everything
// below 0 by 0.1": what becomes of the values that meet a condition, one condition after the other. All of it together
// is one function of a value, and the stage of the library with the same values is written in its place; where no word
// is left over and there is no such stage, it must not be read as anything less.
//
//===----------------------------------------------------------------------===//
#include "ComposeSteps.h"
#include "SpokenWords.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

ExprPtr call(std::string name, std::vector<ExprPtr> args) {
  return std::make_shared<Expr>(Expr{Expr::Kind::Call, std::move(name), 0, std::move(args)});
}
ExprPtr numberOf(double value) { return std::make_shared<Expr>(Expr{Expr::Kind::Number, "", value, {}}); }
ExprPtr place() { return std::make_shared<Expr>(Expr{Expr::Kind::Name, "i", 0, {}}); }
ExprPtr theValue() { return std::make_shared<Expr>(Expr{Expr::Kind::Index, "x", 0, {place()}}); }

struct Piece {
  ExprPtr condition; ///< null: all that is left
  ExprPtr value;
};

class Pieces : public SpokenWords {
public:
  using SpokenWords::SpokenWords;

  /// What each value becomes; null where more is said, or no condition.
  ExprPtr request() {
    lead();
    tail();
    do {
      while (takeAny(separators) || bareTail()) {
      }
      if (at == words.size())
        break;
      if (!piece())
        return nullptr;
      tail();
    } while (at < words.size() && separators.count(raw()));
    while (takeAny(separators)) {
    }
    if (at != words.size() || llvm::none_of(pieces, [](const Piece &one) { return one.condition; }))
      return nullptr;
    auto stays = [](const Piece &one) { return one.value->kind == Expr::Kind::Index; };
    if (llvm::all_of(pieces, stays)) // "keep the positive ones" drops the others
      return nullptr;
    ExprPtr result = theValue();
    for (const Piece &one : llvm::reverse(pieces))
      result = one.condition ? call("?:", {one.condition, one.value, result}) : one.value;
    return result;
  }

private:
  const Set separators = {",", ";", ".", ":", "and", "while", "then", "but"};

  std::optional<double> number() {
    size_t before = at;
    bool isNegative = take({"minus"}) || take({"-"});
    if (!isNegative)
      take({"plus"}) || take({"+"});
    take({"a"});
    if (at < words.size() && words[at].number) {
      double value = *words[at++].number;
      return isNegative ? -value : value;
    }
    if (take({"zeros"}))
      return 0;
    at = before;
    return std::nullopt;
  }
  /// "every value", "everything", "whatever": false where nothing is said.
  bool subject() {
    size_t before = at;
    static const Set articles = {"a", "each", "every", "all", "any", "the", "those", "these"},
                     nouns = {"element", "pixel",  "everything", "everyth", "anything", "anyth",   "whatever", "what",
                              "input",   "it",     "x",          "sample",  "they",     "integer", "int",      "float",
                              "floats",  "double", "doubles",    "ints",    "integers", "halfs"};
    while (takeAny(articles)) {
    }
    return noun(nouns) || (at > before && words[at - 1].raw != "the" && anyNoun()) || at > before;
  }
  /// A type is kept: "where the double exceeds 0.25".
  bool noun(const Set &nouns) {
    static const Set types = {"int",     "ints", "float", "floats",  "double",
                              "doubles", "half", "halfs", "bf16", "bfloat16", "integer", "integers"};
    if (types.count(raw()))
      kept.push_back({words[at].begin, words[at].end});
    return takeAny(nouns);
  }
  /// "negative prices": whatever the values are called.
  bool anyNoun() {
    static const Set others = {"above",  "over",      "under",   "less",   "lower",   "greater",
                               "larger", "smaller",   "bigger",  "higher", "others",  "other",
                               "rest",   "elsewhere", "becomes", "stays",  "remains", "passes"};
    bool isNoun = at < words.size() && raw().size() > 3 && !words[at].number && !words[at].tells &&
                  !others.count(raw()) && raw() != text() && llvm::StringRef(raw()).ends_with("s");
    return isNoun && ++at;
  }
  /// "positive", "(that is) below 0", "greater than 1".
  ExprPtr condition() {
    size_t before = at;
    static const Set links = {"that", "which", "is", "are", "where", "when", "if", "was", "lie", "lies", "whose"};
    auto compare = [&](const char *sign) -> ExprPtr {
      std::optional<double> limit = number();
      return limit ? call(sign, {theValue(), numberOf(*limit)}) : nullptr;
    };
    auto none = [&]() -> ExprPtr { return at = before, nullptr; };
    while (takeAny(links) || (at > before && subject())) {
    }
    ExprPtr result;
    static const Set larger = {"larger", "greater", "bigger", "higher", "more", "brighter"},
                     smaller = {"smaller", "less", "lower", "fewer", "darker"};
    if (take({"positive"}) || take({"positives"}))
      result = call(">", {theValue(), numberOf(0)});
    else if (take({"negative"}) || take({"negatives"}))
      result = call("<", {theValue(), numberOf(0)});
    else if (take({"nonnegative"}))
      result = call(">=", {theValue(), numberOf(0)});
    else if (take({"at", "least"}) || take({"no", "less", "than"}))
      result = compare(">=");
    else if (take({"at", "most"}) || take({"no", "more", "than"}))
      result = compare("<=");
    else if (takeAny(larger))
      result = take({"than"}) ? compare(">") : nullptr;
    else if (takeAny(smaller))
      result = take({"than"}) ? compare("<") : nullptr;
    else if (take({"above"}) || take({"over"}) || take({"exceeding"}) || take({"exceeds"}) || take({"beyond"}) ||
             take({">"}))
      result = compare(">");
    else if (take({"below"}) || take({"under"}) || take({"beneath"}) || take({"<"}))
      result = compare("<");
    else if (take({"equal", "to"}) || (at > before && at < words.size() && words[at].number))
      result = compare("==");
    else if (take({"zero"}) || take({"zeros"}))
      result = call("==", {theValue(), numberOf(0)});
    if (!result)
      return none();
    static const Set nouns = {"ones", "element", "one",    "input",  "pixel",   "number", "part",     "integer",
                              "int",  "float",   "floats", "double", "doubles", "ints",   "integers", "halfs"};
    if (!words[at - 1].number || last() == "zero")
      noun(nouns) || (words[at - 1].tells && anyNoun());
    return result;
  }
  bool isRest() {
    return take({"everything", "else"}) || take({"all", "others"}) || take({"the", "others"}) ||
           take({"all", "other", "values"}) || take({"the", "rest"}) || take({"others"}) || take({"other", "values"}) ||
           take({"otherwise"}) || take({"elsewhere"}) || take({"for", "the", "rest"}) ||
           take({"for", "all", "others"}) || take({"for", "the", "others"}) || take({"else"}) ||
           take({"all", "the", "rest"}) || take({"the", "other", "values"}) || take({"everywhere", "else"}) ||
           take({"the", "other", "ones"});
  }
  /// What becomes of them: "zero", "unchanged", "multiplied by 0.1".
  ExprPtr value() {
    size_t before = at;
    take({"a"}) || take({"the", "value"}) || take({"exactly"}) || take({"just"});
    if (std::optional<double> constant = number())
      return numberOf(*constant);
    at = before;
    if (take({"as", "they", "are"}) || take({"as", "it", "is"}) || take({"as", "is"}) || take({"unchanged"}) ||
        take({"alone"}) || take({"unaltered"}) || take({"untouched"}) || take({"the", "same"}) || take({"through"}) ||
        take({"itself"}) || take({"themselves"}) || take({"what", "they", "are"}) || take({"what", "it", "is"}) ||
        take({"the", "value", "itself"}) || take({"x"}))
      return theValue();
    if (take({"its", "absolute", "value"}) || take({"their", "absolute", "value"}) ||
        take({"the", "absolute", "value"}))
      return call("abs", {theValue()});
    static const Set negations = {"negated", "positive"}; // of negative ones
    if (takeAny(negations))
      return call("-", {theValue()});
    if (take({"squared"}) || take({"their", "square"}) || take({"its", "square"}))
      return call("*", {theValue(), theValue()});
    for (StringRef name : {"sqrt", "log", "exp", "reciprocal"}) {
      size_t named = at;
      if (takeAny({"its", "their", "the"}) && (take({name}) || (name == "sqrt" && take({"square", "root"}))))
        return name == "reciprocal" ? call("/", {numberOf(1), theValue()}) : call(name.str(), {theValue()});
      at = named;
    }
    if (take({"halved"}))
      return call("*", {theValue(), numberOf(0.5)});
    if (take({"doubled"}))
      return call("*", {theValue(), numberOf(2)});
    if (take({"multiplied", "by"}) || take({"multiplied", "with"}) || take({"scaled", "by"}) ||
        take({"scaled", "with"}) || take({"times"}))
      if (std::optional<double> factor = number())
        return call("*", {theValue(), numberOf(*factor)});
    if (take({"e", "^", "x"}) || take({"exp", "(", "x", ")"}) || take({"e", "to", "the", "x"}) ||
        take({"their", "exponential"}) || take({"its", "exponential"}))
      if ((take({"-"}) || take({"minus"})) && take({"1"}))
        return call("-", {call("exp", {theValue()}), numberOf(1)});
    at = before;
    return nullptr;
  }
  bool becomes() {
    return take({"becomes"}) || take({"become"}) || take({"becoming"}) || take({"turns", "into"}) ||
           take({"turn", "into"}) || take({"is", "set", "to"}) || take({"are", "set", "to"}) || take({"set", "to"}) ||
           take({"is", "replaced", "by"}) || take({"are", "replaced", "by"}) || take({"is", "replaced", "with"}) ||
           take({"are", "replaced", "with"}) || take({"replaced", "by"}) || take({"gets"}) || take({"get"}) ||
           take({"gives"}) || take({"give"}) || take({"stays"}) || take({"stay"}) || take({"remains"}) ||
           take({"remain"}) || take({"map", "to"}) || take({"maps", "to"}) || take({"go", "to"}) ||
           take({"goes", "to"}) || take({"is", "left"}) || take({"are", "left"}) || take({"is", "kept"}) ||
           take({"are", "kept"}) || take({"pass"}) || take({"passes"}) || take({"is"}) || take({"are"}) ||
           take({"be"}) || take({"kept"}) || take({"left"}) || take({"to"}) || take({"becom"}) ||
           take({"should", "be"}) || take({"should", "become"}) || take({"clipped", "to"}) || take({"by"}) ||
           take({"with"});
  }
  bool add(ExprPtr condition, ExprPtr value) {
    if (!value)
      return false;
    pieces.push_back({std::move(condition), std::move(value)});
    return true;
  }
  /// The values that are spoken of: with a condition, or all the others.
  bool target(ExprPtr &condition) {
    size_t before = at;
    if (isRest())
      return condition = nullptr, true;
    take({"for"}) || take({"if"});
    subject() || anyNoun();
    if ((condition = this->condition())) {
      subject();
      return true;
    }
    at = before;
    return false;
  }
  bool piece() {
    size_t before = at;
    ExprPtr which;
    auto none = [&] { return at = before, false; };
    if (take({"replace"}) || take({"set"}) || take({"turn"}) || take({"make"}) || take({"let"}) || take({"map"}) ||
        take({"change"}) || take({"clip"}) || take({"cut"})) {
      if (!target(which))
        return none();
      take({"with"}) || take({"by"}) || take({"to"}) || take({"into"}) || take({"be"}) || take({"become"}) ||
          take({"equal", "to"});
      return add(which, value()) || none();
    }
    if (take({"keep"}) || take({"leave"}) || take({"pass"}) || take({"copy"}) || take({"retain"})) {
      if (!target(which))
        return none();
      value();
      return add(which, theValue());
    }
    if (take({"multiply"}) || take({"scale"}) || take({"shrink"})) {
      if (!target(which) || (!take({"by"}) && !take({"with"})))
        return none();
      take({"a", "factor", "of"}) || take({"a", "factor"});
      std::optional<double> factor = number();
      return (factor && add(which, call("*", {theValue(), numberOf(*factor)}))) || none();
    }
    bool isFlip = take({"negate"}) || take({"flip", "the", "sign", "of"}) || take({"change", "the", "sign", "of"});
    bool isSquare = !isFlip && take({"square"});
    if (isFlip || isSquare)
      return (target(which) && add(which, isFlip ? call("-", {theValue()}) : call("*", {theValue(), theValue()}))) ||
             none();
    // "1 where the value is above 0.5"
    size_t start = at;
    take({"write"}) || take({"output"}) || take({"put"}) || take({"give"}) || take({"return"}) || take({"use"});
    if (ExprPtr result = value()) {
      static const Set when = {"where",    "if",        "when",      "for",        "wherever",
                               "whenever", "otherwise", "elsewhere", "everywhere", "else"};
      if (when.count(raw()) && target(which))
        return add(which, result);
    }
    at = start;
    if (!target(which))
      return none();
    take({","});
    if (take({"change", "sign"}) || take({"change", "their", "sign"}) || take({"changes", "its", "sign"}) ||
        take({"change", "signs"}))
      return add(which, call("-", {theValue()}));
    take({"output"}) || take({"write"}) || take({"return"}) || take({"it"});
    if (becomes())
      take({"multiplied", "by"}) ? at -= 2 : at;
    else if (take({"unchanged"}))
      return add(which, theValue());
    size_t behind = at;
    if (ExprPtr result = value())
      return add(which, result);
    at = behind;
    static const Set stays = {"stay", "stays", "remain", "remains", "kept", "pass", "passes"};
    if (stays.count(last()))
      return add(which, theValue());
    return none();
  }

  std::vector<Piece> pieces;
};

} // namespace

std::string optiml::gen::piecesInWords(StringRef request, const Library &library, const Vocabulary &vocabulary) {
  Pieces pieces(request, vocabulary);
  Formula formula;
  formula.value = pieces.request();
  if (!formula.value)
    return request.str();
  formula.target = std::make_shared<Expr>(Expr{Expr::Kind::Index, "r", 0, {place()}});
  return wordsOfFormula(formula, library).value_or("formula") + pieces.keptOf(request);
}
