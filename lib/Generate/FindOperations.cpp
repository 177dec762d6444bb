//===- FindOperations.cpp - which operations the words of a request name --===//
//
// The phrases of the operations, and the ways to describe them ("means"), are looked for among the request's words.
// What is found is weighed: rare words, nearness, what else was said and fits. Where nothing fits, the operation that
// is asked for in such words (Recall.h) is tried.
//
//===----------------------------------------------------------------------===//
#include "Reader.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml;
using namespace optiml::gen;

std::vector<const Operation *> Reader::nearest(size_t count) const {
  std::vector<std::pair<double, const Operation *>> ranked;
  for (const Operation &op : library.operations())
    if (!op.isFamily && !op.isSnippet && !op.says.empty())
      if (double score = index.bm25(&op, tokens))
        ranked.push_back({score, &op});
  llvm::stable_sort(ranked, [](auto &a, auto &b) { return a.first > b.first; });
  std::vector<const Operation *> result;
  for (auto &[score, op] : ranked)
    if (result.size() < count)
      result.push_back(op);
  return result;
}

llvm::Error Reader::refuse(const std::string &why) const {
  std::string text = "I don't know that one: " + why;
  std::string names;
  for (const Operation *op : nearest(4))
    names += (names.empty() ? "" : ", ") + op->name;
  if (!names.empty())
    text += "\nThe nearest that I know: " + names;
  return makeError(text + "\n--list shows all");
}

/// How well what was said beside the name fits.
double Reader::offers(const Operation &op) const {
  double score = 0;
  for (const Modifier &modifier : modifiers)
    score += choiceOffers(op, modifier.name) ? 1.0 : op.isStage || modifier.soft ? 0 : -0.7;
  if (!type.empty() && !llvm::is_contained(op.types, type))
    score -= 1;
  // Of two operations of one name ("sort"), the one that needs nothing else to be said.
  if (llvm::any_of(op.always, [&](const std::string &form) {
        return llvm::none_of(modifiers, [&](const Modifier &modifier) { return modifier.name == form; });
      }))
    score -= 0.3;
  // "pooling of 1000 floats" is of a sequence.
  bool hasShape = llvm::any_of(
      tokens, [](const Token &token) { return token.isShape() || token.text == "2d" || token.text == "3d"; });
  for (size_t at = 0; at + 1 < tokens.size() && !hasShape && !op.isStage; ++at)
    if (tokens[at].isNumber() && tokens[at].values[0] >= 32 &&
        (typeAt.count(at + 1) || tokens[at + 1].text == "sample")) {
      score += !op.sizes.empty() && op.sizes[0].name == "n" ? 0.4 : 0;
      break;
    }
  for (const Token &token : tokens)
    if (token.isShape() && !op.shapes.empty())
      score += llvm::any_of(op.shapes,
                            [&](const ShapeRule &rule) {
                              return llvm::any_of(rule.shapes,
                                                  [&](auto &shape) { return shape.size() == token.values.size(); });
                            })
                   ? 0.3
                   : -0.3;
  return score;
}

/// Words of names of stages that are said as they stand: the vector of "add a bias vector" is none that a matrix is
/// multiplied with.
std::vector<bool> Reader::wordsOfStages() const {
  std::vector<bool> result(tokens.size(), false);
  for (const Operation &op : library.operations())
    if (op.isStage && llvm::any_of(op.operands, [](const Operand &operand) { return operand.shape == "column"; }))
      for (const std::vector<std::string> &phrase : index.phrases(&op))
        for (size_t at = 0; at < tokens.size() && phrase.size() > 1; ++at)
          if (std::optional<Span> span = matchPhrase(tokens, at, phrase, 0, used))
            for (size_t word : span->at)
              result[word] = true;
  return result;
}

std::vector<Match> Reader::allMatches() const {
  std::vector<Match> result;
  std::vector<bool> ofStage = wordsOfStages(), none(tokens.size(), false);
  bool isVector = llvm::any_of(tokens, [](const Token &token) { return token.text == "1d"; });
  std::vector<Token> bare; // without the types
  for (size_t at = 0; at < tokens.size(); ++at)
    if (!typeAt.count(at))
      bare.push_back(tokens[at]);
  llvm::StringSet<> words; // of the request: most phrases have others
  uint64_t bits = 0;
  for (const Token &token : tokens)
    for (const std::string &word :
         {token.text, token.raw, token.spelled ? std::to_string(int64_t(token.values[0])) : token.raw})
      words.insert(word), bits |= bitsOf(word);
  auto mayMatch = [&](const Phrase &phrase) {
    return !(phrase.bits & ~bits) &&
           llvm::all_of(phrase, [&](const std::string &word) { return word == "#" || words.contains(word); });
  };
  for (const Operation &op : library.operations()) {
    if (op.isFamily || op.isSnippet || &op == without)
      continue;
    auto forbids = [&](const Phrase &phrase) {
      if (phrase.size() > 1 && bare.size() < tokens.size() && mayMatch(phrase)) // "a dense float vector"
        for (size_t at = 0; at < bare.size(); ++at)
          if (matchPhrase(bare, at, phrase, 0, none) && !index.isName(phrase))
            return true;
      for (size_t at = 0; at < tokens.size() && mayMatch(phrase); ++at)
        if (std::optional<Span> span = matchPhrase(tokens, at, phrase, 0, none)) {
          bool isData = index.isName(phrase) && isDataName(op, *span); // "the attention scores"
          if (!isData && (op.isStage || llvm::none_of(span->at, [&](size_t word) { return ofStage[word]; })))
            return true;
        }
      return false;
    };
    auto isSaid = [&](const Phrase &phrase) {
      for (size_t at = 0; at < tokens.size() && mayMatch(phrase); ++at)
        if (matchPhrase(tokens, at, phrase, 0, none))
          return true;
      return false;
    };
    if (llvm::any_of(index.notWith(&op), forbids) || (!op.needs.empty() && llvm::none_of(index.needs(&op), isSaid)))
      continue;
    // What works along an axis is meant only where one is named.
    if (op.definitions.count("suffix") && llvm::none_of(modifiers, [&](const Modifier &m) {
          return (m.name == "row" || m.name == "column") && !(isVector && isNamedByNumber(m));
        }))
      continue;
    std::optional<double> known; // hardly any operation has a phrase that is said
    auto fits = [&] {
      if (!known)
        known = offers(op) + (op.needs.empty() ? 0 : 0.7) + 0.05 * index.bm25(&op, tokens);
      return *known;
    };
    auto found = [&](const std::vector<std::string> &phrase, const Span &span, double penalty) {
      size_t width = *llvm::max_element(span.at) - *llvm::min_element(span.at) + 1;
      double score = fits() - penalty - 0.15 * double(width - phrase.size());
      for (const std::string &word : phrase) // a number tells more than how many know it: "1 norm"
        score += isGrammar(word) ? 0.1 : index.idf(word) + (llvm::isDigit(word[0]) ? 1 : 0);
      if (isDataName(op, span))
        score -= 6;
      bool countsThings = llvm::is_contained(phrase, "#") && llvm::any_of(span.at, [&](size_t at) {
                            bool areOperands = op.group == "Linear algebra" && tokens[at].values.size() == 1 &&
                                               tokens[at].values[0] == 2;
                            return tokens[at].spelled && (op.isStage || areOperands);
                          });
      // "padding 1 over a 64x64 image" divides nothing.
      size_t first = span.at.front();
      static const std::set<StringRef> operators = {"by",       "times", "multiply", "divide", "element",
                                                    "subtract", "to",    "add",      "of"};
      bool isValue = first > 0 && tokens[first].isNumber() && !tokens[first].spelled &&
                     index.namesValue(tokens[first - 1].text) && !isGrammar(tokens[first - 1].raw) &&
                     !operators.count(tokens[first - 1].text);
      // "points thrown at a square"
      size_t last = span.at.back();
      bool isFigure = phrase.size() == 1 && (op.name == "square" || op.name == "cube") && first > 0 &&
                      (tokens[first - 1].raw == "a" || tokens[first - 1].raw == "unit") &&
                      (last + 1 == tokens.size() || tokens[last + 1].raw != "of");
      if (!isExcluded(span) && !countsThings && !isFigure && !isValue && !(!llvm::is_contained(phrase, "than") && llvm::any_of(span.at, [&](size_t at) { return compares(at); })))
        result.push_back({&op, span, score});
    };
    for (const std::vector<Phrases> &steps : index.means(&op))
      if (llvm::all_of(steps, [&](const Phrases &step) { return llvm::any_of(step, mayMatch); }))
        if (std::optional<Span> span = matchSteps(steps); span && !isExcluded(*span)) {
          double score = fits() + (steps.size() > 1 ? 2 : 0); // a name counts for more
          for (size_t at : span->at)
            score += isGrammar(tokens[at].text) ? 0.1 : 0.75 * index.idf(tokens[at].text);
          result.push_back({&op, *span, score});
        }
    for (const Phrase &phrase : index.phrases(&op)) {
      if (!mayMatch(phrase))
        continue;
      // Words that say nothing by themselves ("one over", "e to the") must stand together.
      size_t plain = llvm::count_if(phrase, isGrammar);
      unsigned gap = plain == phrase.size() ? 0 : plain + 1 == phrase.size() ? 2 : 8;
      for (size_t at = 0; at < tokens.size(); ++at)
        if (std::optional<Span> span = matchPhrase(tokens, at, phrase, gap, used))
          found(phrase, *span, 0);
        else if (!plain && phrase.size() > 1 && !llvm::is_contained(phrase, "#"))
          if (std::optional<Span> span = matchInAnyOrder(at, phrase))
            found(phrase, *span, phrase.size() == 2 ? 0.5 : 1);
    }
  }
  // "the sum of random numbers": what makes data is none where something is done with it.
  auto makesData = [](const Match &match) { return match.op->definitions.count("data") != 0; };
  if (llvm::any_of(result, [&](const Match &match) { return !match.op->isStage && !makesData(match); }))
    llvm::erase_if(result, makesData);
  llvm::stable_sort(result, [](const Match &a, const Match &b) { return a.score > b.score; });
  return result;
}

const Operation *Reader::recall() const {
  if (recalled || isFinal || &library != &Library::builtin())
    return nullptr;
  return library.find(Recall::builtin().guess(tokens));
}

/// Whether requests for the recalled operation have the word.
bool Reader::isKnownFor(const std::string &word) const {
  return recalled && Recall::builtin().knows(recalled->name, word);
}

/// Takes the recalled operation, unless words speak against it or name something else.
llvm::Error Reader::useRecalled() {
  auto isSaid = [&](const std::vector<std::string> &phrase) {
    for (size_t at = 0; at < tokens.size(); ++at)
      if (matchPhrase(tokens, at, phrase, 0, used))
        return true;
    return false;
  };
  if (llvm::any_of(index.notWith(recalled), isSaid) ||
      (!recalled->needs.empty() && llvm::none_of(index.needs(recalled), isSaid)) ||
      llvm::any_of(tokens,
                   [](const Token &t) { return t.raw == "then" || t.raw == "followed" || t.raw == "afterwards"; }))
    return refuse("no operation is recognized");
  Match match;
  match.op = recalled;
  for (size_t at = 0; at < tokens.size(); ++at)
    if (!used[at] && tokens[at].values.empty() && index.mentions(recalled, tokens[at].text) &&
        isKnownFor(tokens[at].text))
      match.span.at.push_back(at);
  for (const Match &other : allMatches())
    for (size_t at : other.span.at)
      if (other.op != recalled && tokens[at].values.empty() && !isGrammar(tokens[at].raw) &&
          !isKnownFor(tokens[at].text) && !vocabulary.isFiller(tokens[at].text))
        return refuse("no operation is recognized");
  if (match.span.at.empty())
    return refuse("no operation is recognized");
  for (size_t at = 0; at + 1 < tokens.size(); ++at) // "total per customer"
    if (tokens[at].raw == "per" && tokens[at + 1].values.empty() && tokens[at + 1].text != "row" &&
        tokens[at + 1].text != "column" && !index.mentions(recalled, tokens[at + 1].text))
      return refuse("what 'per " + tokens[at + 1].raw + "' has to do with " + recalled->name + " is not clear");
  use(match.span);
  if (!recalled->isStage)
    heavy = match;
  result.notes.push_back("no name of an operation is recognized; such requests usually mean " + recalled->name);
  return orderStages({match});
}
