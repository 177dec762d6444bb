//===- CheckWords.cpp - what is left of a request must be harmless --------===//
#include "Reader.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

/// "the number of bins is 64" is a size.
bool Reader::countsSize(size_t at) const {
  for (size_t next = at + 1; next < std::min(at + 6, tokens.size()); ++next)
    if (tokens[next].isNumber())
      return true;
  return false;
}

/// "invert brightness: multiply by -1 and add 255": what stands before the colon is said again behind it.
bool Reader::isLabel(size_t at) const {
  size_t first = heavy.span.at.empty() ? tokens.size() : heavy.first();
  for (const Span &span : stageSpans)
    first = std::min(first, span.at.front());
  for (size_t next = at + 1; next <= first && next < tokens.size(); ++next)
    if (tokens[next].explains)
      return true;
  return false;
}

/// "with pivoting", "using a stack": how, or with what else.
bool Reader::isManner(size_t at) const {
  static const std::set<StringRef> leads = {"with", "using", "via"};
  size_t first = heavy.span.at.empty() ? (stageSpans.empty() ? 0 : stageSpans[0].at.front()) : heavy.first();
  for (size_t back = 1; back <= 3 && back <= at && at - back > first; ++back) {
    const Token &before = tokens[at - back];
    if (leads.count(before.raw) || (before.raw == "by" && back < 2 && !StringRef(tokens[at].raw).ends_with("ing")))
      return true;
    bool isArticle = before.raw == "a" || before.raw == "an";
    if (!before.values.empty() || (before.raw.size() < 3 && !isArticle) || before.raw == "and")
      return false;
  }
  return false;
}

/// Arrays that an element-wise chain reads.
unsigned Reader::countInputs() const {
  unsigned count = 1;
  for (const Stage &stage : result.before)
    count += stage.operation->operands.size();
  return heavy.op->says.empty() ? count : 0;
}

/// What a row- or column-wise operation reads with its stages.
size_t Reader::countOperands() const {
  size_t count = size_t(llvm::count_if(heavy.op->buffers, [](const Buffer &buffer) {
    return buffer.role != Buffer::Role::Out && buffer.role != Buffer::Role::Temporary;
  }));
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages)
      count += stage.operation->operands.size();
  return count;
}

/// "of two 500x20 matrices".
bool Reader::countsOperands(size_t at) const {
  static const std::set<StringRef> operands = {"matrices", "arrays", "vectors", "tables", "lists"};
  size_t next = at + 1;
  while (next < tokens.size() && (tokens[next].isShape() || typeAt.count(next)))
    ++next;
  return tokens[at].values[0] > 1 && tokens[at].values[0] < 5 && at > 0 && tokens[at - 1].raw == "of" &&
         next < tokens.size() && operands.count(tokens[next].raw) && heavy.op->group == "Row- and column-wise";
}

/// "the seven-point stencil", "relu capped at six": a number that is part of what is computed.
bool Reader::isNamedNumber(int64_t value) const {
  auto names = [&](const Operation &op) { return StringRef(op.name).contains(std::to_string(value)); };
  return names(*heavy.op) || llvm::any_of(result.before, [&](const Stage &stage) { return names(*stage.operation); }) ||
         llvm::any_of(result.after, [&](const Stage &stage) { return names(*stage.operation); });
}

/// "1M words": what a number counts, whatever it is called.
bool Reader::isUnit(size_t at) const {
  size_t number = at - 1;
  while (number < at && number > 0 && typeAt.count(number))
    --number;
  StringRef word = tokens[at].raw;
  static const std::set<StringRef> ofNumbers = {"digits", "bits", "dimensions", "decimals", "letters", "passes"};
  return at > 0 && !ofNumbers.count(word) && !tokens[number].values.empty() && !tokens[number].spelled &&
         used[number] && word.ends_with("s") && !word.ends_with("ss") && word.size() > 3;
}

/// "of 5000 positive floats": what they are, not which of them.
bool Reader::describesData(size_t at) const {
  static const std::set<StringRef> kinds = {"positive", "negative", "nonzero"};
  size_t next = at + 1;
  return (kinds.count(tokens[at].raw) || !vocabulary.isTelling(tokens[at].text)) && at > 0 &&
         tokens[at - 1].isNumber() && !tokens[at - 1].spelled && next < tokens.size() &&
         (typeAt.count(next) || (tokens[next].text == "element" && kinds.count(tokens[at].raw)));
}

/// "y = 2 A x - y", where no product was understood: an equation of more arrays than are read.
bool Reader::hasEquationLeft() const {
  static const std::set<StringRef> ends = {",", ".", ";", "with", "for", "where", "of", "in", "and", "on"};
  auto isVariable = [&](size_t at) { return tokens[at].raw.size() == 1 && llvm::isAlpha(tokens[at].raw[0]); };
  for (size_t at = 1; at + 1 < tokens.size() && heavy.op->says.empty(); ++at) {
    if (tokens[at].raw != "=" || !isVariable(at - 1))
      continue;
    std::set<std::string> variables;
    for (size_t next = at + 1; next < tokens.size() && !ends.count(tokens[next].raw); ++next)
      if (isVariable(next) && !used[next])
        variables.insert(tokens[next].raw);
    if (variables.size() > countInputs())
      return true;
  }
  return false;
}

llvm::Error Reader::checkWords() {
  if (hasEquationLeft())
    return refuse("the equation is not understood");
  unsigned unknown = 0;
  for (size_t at = 0; at < tokens.size(); ++at) {
    const Token &token = tokens[at];
    if (used[at] || token.raw == "/" || token.isShape() || (token.isNumber() && !token.spelled))
      continue;
    bool elementwise =
        token.text == "elementwise" || (token.text == "wise" && at > 0 && tokens[at - 1].text == "element");
    if (elementwise && heavy.op->group == "Reductions" && result.before.empty())
      return refuse("an element-wise " + heavy.op->name + " is none of its forms");
    if (vocabulary.isForeign(token.text))
      return refuse("'" + token.raw + "' is nothing that " + heavy.op->name + " or another operation offers");
    // "128-bit keys", where no type of this name is known
    if (llvm::isDigit(token.raw[0]) && StringRef(token.raw).ends_with("bit") && !index.mentions(heavy.op, token.text))
      return refuse("no type of '" + token.raw + "' is offered");
    // "the sum of energies per molecule" is more than one
    bool isSingle = heavy.op->group == "Reductions" && llvm::none_of(result.choices, [](const auto &choice) {
      return choice.second == "row" || choice.second == "column";
    });
    static const std::set<StringRef> ofEach = {"with", "of", "having", "holding", "containing", "has", "being", "is"};
    if (token.text == "each" && isSingle && !ofEach.count(at + 1 < tokens.size() ? tokens[at + 1].raw : "") && at + 1 < tokens.size() && !used[at + 1] && tokens[at + 1].values.empty() &&
        tokens[at + 1].text.size() > 2 && !index.mentions(heavy.op, tokens[at + 1].text))
      return refuse("what '" + token.raw + " " + tokens[at + 1].raw + "' has to do with " + heavy.op->name + " is not clear");
    // "the median of each 5x5 block"
    static const std::set<StringRef> parts = {"block", "blocks", "tile", "tiles", "patch", "patches", "region", "cell", "chunk", "group"};
    bool isWhole = isSingle || heavy.op->group == "Linear algebra" || heavy.op->group == "Sorting";
    if (token.text == "each" && isWhole && at + 2 < tokens.size() && tokens[at + 1].isShape() && parts.count(tokens[at + 2].raw))
      return refuse("what 'each " + tokens[at + 1].raw + " " + tokens[at + 2].raw + "' has to do with " + heavy.op->name + " is not clear");
    // "a different threshold per channel"
    bool varies = false;
    for (size_t next = at + 1; token.raw == "different" && next < std::min(at + 5, tokens.size()); ++next)
      varies |= tokens[next].text == "each" && next > at + 1;
    if (varies)
      return refuse("what is different for each is not offered by " + heavy.op->name);
    // "tanh of the product of two vectors", where nothing multiplies
    static const std::set<StringRef> ofTwo = {"product", "sum", "difference", "quotient", "ratio"};
    if (ofTwo.count(token.raw) && at + 2 < tokens.size() && tokens[at + 1].raw == "of" && tokens[at + 2].raw == "two" &&
        !index.mentions(heavy.op, token.text))
      return refuse("what '" + token.raw + " of two' has to do with " + heavy.op->name + " is not clear");
    // "with reset every 10 elements"
    bool isPeriod = token.raw == "every" && at + 1 < tokens.size() && tokens[at + 1].isNumber() && tokens[at + 1].values[0] > 1 &&
                    llvm::none_of(heavy.op->sizes, [](const Size &size) { return size.name == "stride" || size.name == "length"; });
    if (isPeriod)
      return refuse("what 'every " + tokens[at + 1].raw + "' has to do with " + heavy.op->name + " is not clear");
    // "sort … by their distance": an order of its own
    bool byOther = token.raw == "by" && heavy.op->group == "Sorting" && at + 2 < tokens.size() &&
                   (tokens[at + 1].raw == "its" || tokens[at + 1].raw == "their" || tokens[at + 1].raw == "the");
    if (byOther && tokens[at + 2].text != "element" && !index.mentions(heavy.op, tokens[at + 2].text) &&
        !llvm::is_contained(heavy.span.at, at + 2) && !typeAt.count(at + 2))
      return refuse("what 'by " + tokens[at + 2].raw + "' has to do with " + heavy.op->name + " is not clear");
    // "LU of many small matrices"
    static const std::set<StringRef> many = {"many", "several", "multiple", "numerous"};
    for (size_t next = at + 1; many.count(token.raw) && next < std::min(at + 3, tokens.size()); ++next)
      if (tokens[next].text == "matrix" && heavy.op->group == "Linear algebra" && !choiceOffers(*heavy.op, "batched"))
        return refuse(heavy.op->name + " is not offered for many matrices");
    // "x times y", where nothing multiplies
    auto isVariable = [&](size_t place) {
      return place < tokens.size() && tokens[place].raw.size() == 1 && llvm::isAlpha(tokens[place].raw[0]);
    };
    static const std::set<StringRef> operators = {"times", "plus", "minus", "+", "*"};
    if (operators.count(token.raw) && at > 0 && isVariable(at - 1) && isVariable(at + 1) && heavy.op->says.empty())
      return refuse("what '" + tokens[at - 1].raw + " " + token.raw + " " + tokens[at + 1].raw + "' has to do with " +
                    heavy.op->name + " is not clear");
    // "accurately", "carefully": how well, where it is no way of its own ("adaptively")
    static const std::set<StringRef> nouns = {"anomaly", "assembly", "butterfly", "family", "monopoly", "supply"};
    bool isAdverb = token.raw.size() > 5 && StringRef(token.raw).ends_with("ly") && !nouns.count(token.raw) &&
                    !index.isKnown(token.text);
    bool filler = vocabulary.isFiller(token.text) || token.text.size() < 2 || isAdverb;
    bool ofStencil =
        token.spelled && llvm::any_of(llvm::ArrayRef(tokens).slice(at + 1, std::min<size_t>(2, tokens.size() - at - 1)),
                                      [](const Token &next) {
                                        return next.text == "neighbor" || next.text == "point" || next.raw == "live" ||
                                               next.raw == "or"; // "six face neighbours"
                                      });
    if (ofStencil)
      continue;
    if (token.spelled && token.values[0] == countInputs() && at + 3 < tokens.size() + 2 &&
        llvm::any_of(
            llvm::ArrayRef(tokens).slice(at + 1, std::min<size_t>(3, tokens.size() - at - 1)),
            [](const Token &next) { return next.text == "array" || next.text == "vector" || next.text == "input"; }))
      continue; // "a*b + c of three arrays"
    // "the mean of each column of two matrices", of which there is one
    if (token.spelled && !used[at] && countsOperands(at) && double(countOperands()) < token.values[0])
      return refuse("what '" + token.raw + "' counts is not clear");
    bool saidAgain = token.spelled && llvm::any_of(result.sizes, [&](const auto &size) {
                       return given[size.first] && double(size.second) == token.values[0];
                     });
    // "eight in the middle and minus one around", as its own title has it
    saidAgain |= token.spelled && token.values[0] > 3 && llvm::is_contained(vocabulary.words(heavy.op->title), std::to_string(int64_t(token.values[0])));
    if (saidAgain) // "by itself ten times, that is its 10th power"
      continue;
    if (token.spelled && !filler && !isNamedNumber(int64_t(token.values[0])))
      return refuse("what '" + token.raw + "' counts is not clear");
    bool known = index.mentions(heavy.op, token.text) || (isKnownFor(token.text) && !isManner(at));
    for (const auto *stages : {&result.before, &result.after})
      for (const Stage &stage : *stages)
        known |= index.mentions(stage.operation, token.text);
    static const std::set<StringRef> counts = {"count", "counting"};
    bool asksHowMany = counts.count(token.raw) || (token.raw == "many" && at > 0 && tokens[at - 1].raw == "how") || (token.raw == "number" && token.text == "count" && !countsSize(at));
    // "at most 500 iterations"
    bool limitsSize = (token.raw == "notmore" || token.raw == "notless") && at + 1 < tokens.size() &&
                      tokens[at + 1].isNumber() && llvm::any_of(result.sizes, [&](const auto &size) {
                        return given[size.first] && double(size.second) == tokens[at + 1].values[0];
                      });
    if (limitsSize)
      continue;
    if (describesData(at) || (isUnit(at) && !known))
      continue;
    if (((vocabulary.isTelling(token.text) && token.raw != "gradients") || asksHowMany) && !known)
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    // "…, then multiply it by B": a step of its own that was not understood
    static const std::set<StringRef> steps = {"multiply", "add",  "subtract", "divide",   "sort",
                                              "sum",      "scan", "square",   "transpos", "convolution",
                                              "normaliz", "exp",  "revers",   "reduc"};
    bool ofStage =
        llvm::any_of(stageSpans, [&](const Span &span) { return span.at.front() > at && span.at.front() < at + 5; });
    // "normalise a histogram": what is to be done first
    if (steps.count(token.text) && !ofStage && at == 0 && !known && !filler && !isLabel(at) &&
        !(token.text == "convolution" && heavy.op->group == "Stencils"))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    if (steps.count(token.text) && !ofStage && at > 0 && tokens[at - 1].raw == "then" &&
        !explainsAgain(heavy.span.at.empty() ? 0 : heavy.first(), at))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    // "FFTs followed by a filter"
    size_t before =
        at - (at > 0 && (tokens[at - 1].raw == "a" || tokens[at - 1].raw == "an" || tokens[at - 1].raw == "the"));
    bool follows = before > 1 && tokens[before - 1].raw == "by" && tokens[before - 2].raw == "followed";
    if (follows && token.raw.size() > 2 && (!filler || index.names(token.text)))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    if (filler || known)
      continue;
    for (const Named &wanted : numbersWanted())
      for (const std::string &words : *wanted.words)
        known |= llvm::is_contained(vocabulary.words(words), token.text);
    if (known)
      continue;
    // An unknown word right before the name changes what is meant: "wavelet transform", "topological sort".
    // ("matrix" alone is no name: "the scenario matrix times …")
    bool beforeName = !heavy.span.at.empty() && heavy.span.at.front() == at + 1 &&
                      (heavy.span.at.size() == 1 || !vocabulary.isFiller(tokens[at + 1].text));
    // "evaluate Legendre polynomials": what stands before the word that tells
    auto beforeFirst = [&](const Span &span) {
      return llvm::is_contained(span.at, at + 1) && llvm::all_of(span.at, [&](size_t other) {
               return other > at || vocabulary.isFiller(tokens[other].text);
             });
    };
    beforeName |= llvm::any_of(stageSpans, beforeFirst);
    bool isUnheard = !Recall::builtin().hasHeard(token.text) && !vocabulary.isKnown(token.raw);
    beforeName |= isUnheard && !heavy.span.at.empty() && heavy.first() == at + 1;
    // "convert RGB to HSV"
    if (at > 0 && (tokens[at - 1].raw == "to" || tokens[at - 1].raw == "into") && isUnheard && token.raw.size() < 6)
      return refuse("what 'to " + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    // So does the name of another process behind it: "histogram equalization".
    bool isProcess = llvm::any_of(std::initializer_list<StringRef>{"tion", "sion", "ling", "ment", "ysis"},
                                  [&](StringRef end) { return StringRef(token.raw).ends_with(end); });
    if (isProcess && at > 0 && llvm::is_contained(heavy.span.at, at - 1))
      return refuse("'" + tokens[at - 1].raw + " " + token.raw + "' is not in the library");
    // Such words do not qualify what is known by others: "the timestamps are in order", "the first where the mask is
    // set".
    static const std::set<StringRef> ordinals = {"first", "second", "other"};
    bool isLoose = recalled && !isNamed && (ordinals.count(token.raw) || token.raw.back() == 's');
    if (beforeName && !isLoose && !tokens[at + 1].explains && !isLabel(at)) // "gate: sigmoid(a) * b"
      return refuse("'" + token.raw + " " + tokens[at + 1].raw + "' is not in the library");
    // "sort, then scan": a step of its own that was not understood
    bool isStep = at + 1 < tokens.size() && tokens[at + 1].raw == "then" &&
                  llvm::any_of(library.operations(), [&](const Operation &op) {
                    return !op.isFamily && !op.isSnippet && !op.isStage &&
                           llvm::is_contained(index.phrases(&op), std::vector<std::string>{token.text});
                  });
    if (isStep && !isLabel(at))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    // A word of another operation's name that this one has no use for: that one may be meant ("matrix times its
    // transpose").
    if (const Operation *other = recalled ? nullptr : otherMeaning(at); other && !isDataName(*other, Span{{at}}))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear (" + other->name +
                    "?)");
    auto isLastOf = [&](const Span &span) { // a word between those of a name ("the closest obstacle point") is none
      return at > 0 && !span.at.empty() && *llvm::max_element(span.at) == at - 1;
    };
    bool behindName = isLastOf(heavy.span) || llvm::any_of(stageSpans, isLastOf);
    // "median latency of 5000 requests", "peak load among 1M samples": what is measured
    static const std::set<StringRef> ofData = {"of", "among", "over", "in", "from", "across", "out", "within"};
    bool isMeasured = behindName &&
                      (heavy.op->group == "Reductions" || heavy.op->group == "Sorting" ||
                       heavy.op->group == "Row- and column-wise") &&
                      at + 1 < tokens.size() && ofData.count(tokens[at + 1].raw) && !index.names(token.text);
    if (isMeasured) {
      result.ignored.push_back(token.raw);
      continue;
    }
    static const std::set<StringRef> leavesOut = {"without", "excluding", "except"};
    if (at > 0 && leavesOut.count(tokens[at - 1].raw) && !index.isKnown(token.text))
      return refuse("what is meant by '" + tokens[at - 1].raw + " " + token.raw + "' is not clear");
    // What stands right behind the name, or is said to be done with it, has a meaning that would be lost: "N-body with
    // Barnes-Hut", "heat equation with variable diffusivity".
    if (((behindName && (!recalled || isNamed)) || isManner(at)) && !vocabulary.isData(token.raw) && !isLabel(at) &&
        !isExcluded(Span{{at}}))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    result.ignored.push_back(token.raw);
    // What is only recalled must be said in words that are known for it.
    if (recalled && !isNamed && ++unknown > 1)
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
  }
  if (llvm::Error error = checkStages())
    return error;
  return checkStrangeWords();
}

/// "how widely values are spread around their mean": one word names the operation, and others are said with other
/// operations only.
llvm::Error Reader::checkStrangeWords() const {
  std::vector<std::string> names = {heavy.op->name};
  size_t words = 0, spans = 0;
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages)
      names.push_back(stage.operation->name);
  StringRef single = heavy.op->name;
  if (single.consume_back("-by-axis"))
    names.push_back(single.str());
  std::vector<Span> all = stageSpans;
  if (!heavy.span.at.empty())
    all.push_back(heavy.span);
  for (const Span &span : all) {
    ++spans;
    for (size_t at : span.at)
      words += !isGrammar(tokens[at].raw) && !vocabulary.isFiller(tokens[at].text);
  }
  auto isMentioned = [&](const std::string &word) {
    return llvm::any_of(names, [&](const std::string &name) {
      const Operation *op = library.find(name);
      return op && index.mentions(op, word);
    });
  };
  // "append one array to another", "…, then shuffle it": a verb that is not part of what was understood
  auto isHeard = [&](const std::string &word) {
    return llvm::any_of(names, [&](const std::string &name) { return Recall::builtin().knows(name, word); });
  };
  for (size_t at = 0; at + 1 < tokens.size(); ++at) {
    bool isVerb = at == 0 || tokens[at - 1].raw == "then" || tokens[at - 1].raw == "and";
    if (isVerb && !used[at] && vocabulary.isAction(tokens[at].raw) && !isMentioned(tokens[at].text) &&
        !isHeard(tokens[at].text) && !isLabel(at))
      return refuse("what '" + tokens[at].raw + "' has to do with " + names.front() + " is not clear");
  }
  // "replace every negative value by the mean": what the operation gives is an operand of something else
  static const std::set<StringRef> takesBy = {"replace", "multiply", "divide", "scale", "sort", "weight", "shift", "normalize"},
                                   its = {"the", "its", "their"};
  for (size_t last : heavy.span.at)
    if (last > 2 && its.count(tokens[last - 1].raw) && (tokens[last - 2].raw == "by" || tokens[last - 2].raw == "with") &&
        (heavy.op->group == "Reductions" || heavy.op->group == "Linear algebra"))
      for (size_t at = 0; at + 2 < last; ++at)
        if (takesBy.count(tokens[at].raw) && !llvm::is_contained(heavy.span.at, at) && !recalled)
          return refuse("what '" + tokens[last - 2].raw + " " + tokens[last - 1].raw + " " + tokens[last].raw + "' is for is not clear");
  // "the product of the two largest elements": what is asked for comes first
  auto isPart = [&](size_t at) {
    return llvm::is_contained(heavy.span.at, at) ||
           llvm::any_of(stageSpans, [&](const Span &span) { return llvm::is_contained(span.at, at); });
  };
  auto isName = [&](const std::string &word) {
    return llvm::any_of(library.operations(), [&](const Operation &op) {
      return !op.isFamily && !op.isSnippet && (op.group == "Reductions" || op.isStage) && !llvm::is_contained(names, op.name) &&
             llvm::is_contained(index.phrases(&op), std::vector<std::string>{word});
    });
  };
  size_t firstPart = heavy.span.at.empty() ? tokens.size() : heavy.first();
  for (const Span &span : stageSpans)
    firstPart = std::min(firstPart, span.at.front());
  for (size_t at = 0; at < 3; ++at)
    if (at + 1 < tokens.size() && tokens[at + 1].raw == "of" && (at == 0 || tokens[0].raw == "the" || tokens[0].text == "matrix") && !isPart(at) && (!recalled || heavy.op->group == "Sorting") &&
        at < firstPart && firstPart < tokens.size() && (isName(tokens[at].text) || tokens[at].text == "product"))
      return refuse("what '" + tokens[at].raw + " of' has to do with " + names.front() + " is not clear");
  // "scale … so that they sum to one": by what is not said
  bool isAim = false;
  for (size_t at = 0; at + 1 < tokens.size(); ++at)
    isAim |= tokens[at].raw == "so" && tokens[at + 1].raw == "that";
  for (const Stage &stage : result.before)
    for (const Real &real : stage.operation->reals)
      if (isAim && stage.operation->name == "scale" &&
          (!heavy.op->says.empty() || !given.count(real.name) || !given.at(real.name)))
        return refuse("by what to scale is not clear");
  // "equal to their index"
  for (size_t at = 0; at + 2 < tokens.size(); ++at)
    if ((tokens[at].raw == "to" || tokens[at].raw == "than") && its.count(tokens[at + 1].raw) && tokens[at + 1].raw != "the" && at > 0 &&
        (tokens[at - 1].text == "equal" || tokens[at].raw == "than") && !used[at + 2])
      return refuse("what 'to " + tokens[at + 1].raw + " " + tokens[at + 2].raw + "' has to do with " + names.front() + " is not clear");
  // "the number with as many below as above": words that are rarely said at all, and never of this
  constexpr unsigned common = 15;
  std::string foreign;
  unsigned count = 0;
  for (size_t at = 0; at < tokens.size(); ++at) {
    const std::string &word = tokens[at].text;
    bool isAccounted = used[at] || !tokens[at].values.empty() || tokens[at].raw.size() < 3 || typeAt.count(at) ||
                       isMentioned(word) || Recall::isLight(tokens[at].raw) || vocabulary.isData(tokens[at].raw) ||
                       isUnit(at) || describesData(at);
    // "how many temperatures were below zero": what they are
    static const std::set<StringRef> beforeData = {"many", "of", "these", "those", "the", "all", "my", "our", "between", "among", "over"};
    isAccounted |= at > 0 && beforeData.count(tokens[at - 1].raw) && tokens[at].raw.back() == 's' && tokens[at].raw.size() > 4;
    if (!isAccounted && !isLabel(at) && foreign.find("'" + tokens[at].raw + "'") == std::string::npos && !isHeard(word) && Recall::builtin().spreadOf(word) < common) {
      ++count;
      foreign += (foreign.empty() ? "'" : " and '") + tokens[at].raw + "'";
    }
  }
  if (count > 2 || (count == 2 && words <= spans))
    return refuse("what " + foreign + " have to do with " + names.front() + " is not clear");
  if (words > spans)
    return llvm::Error::success();
  for (size_t at = 0; at < tokens.size(); ++at)
    if (!used[at] && tokens[at].values.empty() && tokens[at].raw.size() > 2 && !isMentioned(tokens[at].text) &&
        !vocabulary.isData(tokens[at].raw) && !isUnit(at) && !describesData(at) && !isLabel(at) &&
        Recall::builtin().isStrange(names, tokens[at].text))
      return refuse("what '" + tokens[at].raw + "' has to do with " + names.front() + " is not clear");
  return llvm::Error::success();
}
