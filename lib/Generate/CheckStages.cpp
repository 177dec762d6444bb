//===- CheckStages.cpp - no stage of a request may get lost ---------------===//
//
// "sort the squares", "the variance of the logarithms", "transpose plus one": words that name an operation by
// themselves, in a form in which they ask for it, belong to what was understood, or the request is refused. That the
// operation's description happens to have such a word does not account for it.
//
//===----------------------------------------------------------------------===//
#include "Reader.h"

using namespace optiml;
using namespace optiml::gen;

/// "squares", "squared": not "a square matrix".
static bool asksForStage(const Token &token) {
  static const std::set<StringRef> others = {"signed", "masks", "masked"};
  StringRef raw = token.raw;
  return !others.count(raw) && raw.size() > 3 &&
         (raw.ends_with("s") || raw.ends_with("ed") || raw == "maxima" || raw == "minima") && raw != token.text &&
         !raw.ends_with("ss");
}

/// The words of what was understood: operation, stages, and what the operation offers.
std::set<size_t> Reader::accountedFor() const {
  std::set<size_t> accounted(heavy.span.at.begin(), heavy.span.at.end());
  for (const Span &span : stageSpans)
    accounted.insert(span.at.begin(), span.at.end());
  for (const Modifier &modifier : modifiers)
    if (choiceOffers(*heavy.op, modifier.name))
      accounted.insert(modifier.span.at.begin(), modifier.span.at.end());
  return accounted;
}

bool Reader::isMentioned(const std::string &word) const {
  auto has = [&](const Stage &stage) { return index.mentions(stage.operation, word); };
  return index.mentions(heavy.op, word) || llvm::any_of(result.before, has) || llvm::any_of(result.after, has);
}

llvm::Error Reader::checkStages() const {
  std::set<size_t> accounted = accountedFor();
  auto isUnderstood = [&](const Operation &op) {
    auto isIt = [&](const Stage &stage) { return stage.operation == &op; };
    return heavy.op == &op || llvm::any_of(result.before, isIt) || llvm::any_of(result.after, isIt);
  };
  auto asksFor = [&](const std::string &word) {
    std::vector<std::string> name = {word};
    bool isNamed = false;
    for (const Operation &op : library.operations())
      if (!op.isFamily && !op.isSnippet &&
          (op.isStage || op.group == "Reductions" || op.group == "Linear algebra" || op.group == "Sorting" ||
           op.group == "Row- and column-wise") &&
          llvm::is_contained(index.phrases(&op), name) &&
          !((op.group == "Linear algebra" || op.group == "Sorting") && isMentioned(word))) {
        if (isUnderstood(op)) // "masked softmax: add the mask, …"
          return false;
        isNamed = true;
      }
    return isNamed;
  };
  auto isOfStage = [&](size_t at) {
    return llvm::any_of(stageSpans, [&](const Span &span) { return llvm::is_contained(span.at, at); });
  };
  // "transpose plus one"
  auto isInfix = [&](size_t at) {
    static const std::set<StringRef> signs = {"plus", "minus", "times"};
    static const std::set<StringRef> operands = {"the", "a", "its", "another"};
    bool isCount =
        at > 0 && (tokens[at - 1].raw == "many" || !tokens[at - 1].values.empty()); // "how many times the value occurs"
    return signs.count(tokens[at].raw) && at + 1 < tokens.size() &&
           ((tokens[at + 1].isNumber() && !accounted.count(at + 1) && !used[at + 1]) ||
            (tokens[at].raw == "plus" && tokens[at + 1].raw != "or" && !isOfStage(at + 1) &&
             !isMentioned(tokens[at].text)) ||
            (operands.count(tokens[at + 1].raw) && !isCount && !isMentioned(tokens[at].text)));
  };
  size_t sentence = tokens.size(); // what follows the sentence with the name explains it
  for (size_t at = heavy.span.at.empty() ? tokens.size() : heavy.span.at.back(); at < tokens.size(); ++at)
    if (tokens[at].raw == ".") {
      sentence = at;
      break;
    }
  for (size_t at = 0; at < sentence; ++at) {
    // "the difference of x and y, averaged"
    static const std::set<StringRef> links = {"of", "between"};
    bool isOf = at + 1 < tokens.size() && links.count(tokens[at + 1].raw) && at && tokens[at - 1].raw != "per" &&
                tokens[at].raw.size() > 2;
    // "multiply by a half and apply relu": a step by its verb
    static const std::set<StringRef> verbs = {"multiply", "divide", "subtract", "add"};
    static const std::set<StringRef> gerunds = {"multiplying", "dividing", "subtracting",
                                                "adding"}; // "mix … by adding them"
    bool isMeans = at > 0 && tokens[at - 1].raw == "by" && gerunds.count(tokens[at].raw);
    bool isVerb = (verbs.count(tokens[at].raw) || isMeans) &&
                  (isMeans || at == 0 || tokens[at].explains || tokens[at - 1].raw == "then" ||
                   tokens[at - 1].raw == "and" || tokens[at - 1].raw == ",") &&
                  !isKnownFor(tokens[at].text) && (isMeans || !isMentioned(tokens[at].text));
    // "square the matrix and add the identity"
    static const std::set<StringRef> determiners = {"the", "each", "every", "all", "it", "them", "its", "their"};
    bool begins = at == 0 || tokens[at - 1].raw == "then" || tokens[at - 1].raw == "and" || tokens[at - 1].raw == ",";
    isVerb |= begins && at + 1 < tokens.size() && determiners.count(tokens[at + 1].raw) && !used[at] &&
              !isKnownFor(tokens[at].text) && !isMentioned(tokens[at].text) && asksFor(tokens[at].text);
    if (isVerb && !accounted.count(at) && !isLabel(at) && !depthAt(at))
      return refuse("what '" + tokens[at].raw + "' has to do with " + heavy.op->name + " is not clear");
    bool isExplained = explainsAgain(0, at); // "GLU: the first times the sigmoid of the second"
    bool asks = (isInfix(at) && !isExplained) || (isOf && !isMentioned(tokens[at].text) && asksFor(tokens[at].text)) ||
                (asksForStage(tokens[at]) && asksFor(tokens[at].text));
    // "of the row sums"
    static const std::set<StringRef> between = {"the", "all", "their", "row", "column", "rows", "columns"};
    size_t link = at;
    while (link > 0 && between.count(tokens[link - 1].raw))
      --link;
    bool isOperand = link > 1 && tokens[link - 1].raw == "of";
    bool isOfName = isOperand && llvm::is_contained(heavy.span.at, link - 2); // "softmax of the sums"
    bool isAccounted =
        accounted.count(at) &&
        !(recalled && isOfName && tokens[at].raw.back() == 's'); // recalled are all words that are known for it
    if (isAccounted || !asks || isLabel(at) || depthAt(at))
      continue;
    // "coverage differences", "finite differences", "thresholds": what the numbers are, or how the operation is called
    bool isOfData = at > 0 && tokens[at - 1].values.empty() && tokens[at - 1].raw.size() > 3 &&
                    !vocabulary.isFiller(tokens[at - 1].text) && !index.names(tokens[at - 1].text);
    bool isInTitle = !isOperand && llvm::is_contained(vocabulary.words(heavy.op->title), tokens[at].text);
    if ((vocabulary.isData(tokens[at].raw) && !isOfName) || isOfData || isInTitle ||
        (isKnownFor(tokens[at].text) && !isInfix(at) && !isOfName))
      continue;
    return refuse("what '" + tokens[at].raw + "' has to do with " + heavy.op->name + " is not clear");
  }
  return checkLimits(accounted);
}

/// What limits an operation, or applies it twice, and is none of its forms.
llvm::Error Reader::checkLimits(const std::set<size_t> &accounted) const {
  // "the median of the row medians"
  for (size_t at = 0; at + 3 < tokens.size(); ++at) {
    size_t next = at + 2 + (tokens[at + 2].raw == "the");
    if (tokens[at + 1].raw == "of" && next + 1 < tokens.size() &&
        (tokens[next].text == "row" || tokens[next].text == "column") && tokens[next + 1].text == tokens[at].text &&
        accounted.count(at) + accounted.count(next + 1))
      return refuse("the " + tokens[at].raw + " of the " + tokens[next].raw + " " + tokens[next + 1].raw +
                    " is not offered");
  }
  // "clipped at zero": a constant that was not read
  auto hasReals = [](const Stage &stage) { return !stage.operation->reals.empty(); };
  bool mayTake = llvm::any_of(result.before, hasReals) || llvm::any_of(result.after, hasReals);
  for (const Span &span : stageSpans)
    if (size_t at = span.at.back() + 1; mayTake && at + 1 < tokens.size() &&
                                        (tokens[at].raw == "at" || tokens[at].raw == "to") && tokens[at + 1].spelled &&
                                        !used[at + 1] && !accounted.count(at + 1))
      return refuse("what '" + tokens[at].raw + " " + tokens[at + 1].raw + "' has to do with " +
                    tokens[span.at.front()].raw + " is not clear");
  // "floor all floats at zero"
  for (size_t at = 1; at + 1 < tokens.size(); ++at)
    if (tokens[at].raw == "at" && (tokens[at + 1].spelled || tokens[at + 1].raw == "zero") && !used[at + 1] &&
        !accounted.count(at + 1) && heavy.op->says.empty())
      return refuse("what 'at " + tokens[at + 1].raw + "' has to do with " + heavy.op->name + " is not clear");
  // "attention without the softmax", "by a different random number"
  for (size_t at = 1; at < tokens.size(); ++at) {
    size_t before = at - 1 - (at > 1 && tokens[at - 1].raw == "the");
    if (tokens[before].raw == "without" && index.names(tokens[at].text) && index.mentions(heavy.op, tokens[at].text) &&
        !used[at] && !depthAt(at))
      return refuse(heavy.op->name + " is not offered without '" + tokens[at].raw + "'");
    if (tokens[at].raw == "different" && tokens[at - 1].raw == "a" && !accounted.count(at) &&
        !isMentioned(tokens[at].text))
      return refuse("what is different for each is not offered by " + heavy.op->name);
  }
  // "relu of the difference of the row sums": of what is made, and there is one of it
  static const std::set<StringRef> ofTwo = {"difference", "product", "sum", "quotient", "ratio"};
  static const std::set<StringRef> links = {"of", "between"};
  for (const Span &span : stageSpans)
    if (size_t next = span.at.back() + 1; ofTwo.count(tokens[span.at.back()].raw) && next < tokens.size() &&
                                          links.count(tokens[next].raw) && !heavy.span.at.empty() &&
                                          heavy.first() > next && heavy.first() < next + 4)
      return refuse("of which two the " + tokens[span.at.back()].raw + " is meant is not clear");
  // "row sums divided by column sums", "the difference of the column means": of more than one axis, or of two
  static const std::set<StringRef> perAxis = {"sums",  "means",  "averages", "maxima",  "minima",
                                              "norms", "totals", "products", "medians", "variances"};
  auto axis = result.choices.find("axis");
  for (size_t at = 0; at + 1 < tokens.size() && axis != result.choices.end(); ++at) {
    if ((tokens[at].raw != "row" && tokens[at].raw != "column") || !perAxis.count(tokens[at + 1].raw))
      continue;
    size_t link = at - (at > 0 && tokens[at - 1].raw == "the");
    bool isOfTwo = link > 1 && links.count(tokens[link - 1].raw) && ofTwo.count(tokens[link - 2].raw);
    if (axis->second != tokens[at].raw || isOfTwo)
      return refuse("what '" + tokens[at].raw + " " + tokens[at + 1].raw + "' have to do with " + heavy.op->name +
                    " is not clear");
  }
  // "the sum of the first 10 elements"
  for (size_t at = 1; at + 2 < tokens.size(); ++at)
    if (tokens[at].raw == "first" && tokens[at - 1].raw == "the" && tokens[at + 1].isNumber() &&
        tokens[at + 2].text == "element" && !accounted.count(at) && heavy.op->group == "Reductions")
      return refuse("what 'the first " + tokens[at + 1].raw + "' has to do with " + heavy.op->name + " is not clear");
  return llvm::Error::success();
}
