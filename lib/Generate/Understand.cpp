//===- Understand.cpp - from words to an operation, its sizes and stages --===//
//
// Phrases of the operations are looked for among the canonical words; the best match by weight (rare words count more), nearness and
// BM25 over the documentation is taken, then the next that does not overlap. At most one of them may be more than an
// element-wise stage. What the request says beyond that (type, layout, numbers) must fit what was chosen, or the request is
// refused: nothing else than asked is ever written.
//
//===----------------------------------------------------------------------===//
#include "optiml/Generate/Request.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <set>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

struct Match {
  const Operation *op = nullptr;
  Span span;
  double score = 0;
  size_t first() const { return span.at.front(); }
};

struct Modifier {
  std::string name;
  Span span;
  bool soft = false; ///< means something only to an operation that offers it
};

/// Word statistics of the library.
class Index {
public:
  Index(const Library &library, const Vocabulary &vocabulary) {
    for (const Operation &op : library.operations()) {
      if (op.isFamily || op.isSnippet)
        continue;
      ++count;
      Document &document = documents[&op];
      for (const std::string &phrase : op.says) {
        document.phrases.push_back(vocabulary.words(phrase));
        for (const std::string &word : document.phrases.back()) {
          document.terms[word] += 2;
          nameWords.insert(word);
        }
      }
      for (const std::string &word : vocabulary.words(op.title + " " + op.about))
        if (!vocabulary.isFiller(word))
          ++document.terms[word];
      for (auto &[word, times] : document.terms) {
        ++frequency[word];
        document.length += times;
      }
      total += document.length;
    }
  }

  double idf(const std::string &word) const {
    auto it = frequency.find(word);
    double df = it == frequency.end() ? 0 : it->second;
    return std::log(1 + (count - df + 0.5) / (df + 0.5));
  }
  /// Okapi BM25 with its usual constants.
  double bm25(const Operation *op, const std::vector<Token> &tokens) const {
    const Document &document = documents.at(op);
    double score = 0, average = total / std::max(1.0, count);
    for (const Token &token : tokens) {
      auto it = document.terms.find(token.text);
      if (it != document.terms.end())
        score += idf(token.text) * it->second * 2.2 / (it->second + 1.2 * (0.25 + 0.75 * document.length / average));
    }
    return score;
  }
  const std::vector<std::vector<std::string>> &phrases(const Operation *op) const { return documents.at(op).phrases; }
  bool mentions(const Operation *op, const std::string &word) const { return documents.at(op).terms.count(word) != 0; }
  /// Whether the word is part of a phrase that means an operation.
  bool names(const std::string &word) const { return nameWords.count(word) != 0; }

private:
  struct Document {
    std::vector<std::vector<std::string>> phrases;
    std::map<std::string, double> terms;
    double length = 0;
  };
  std::map<const Operation *, Document> documents;
  std::map<std::string, double> frequency;
  std::set<std::string> nameWords;
  double count = 0, total = 0;
};

class Reader {
public:
  Reader(StringRef request, const Library &library, const Vocabulary &vocabulary)
      : library(library), vocabulary(vocabulary), index(library, vocabulary), tokens(vocabulary.tokenize(request)),
        used(tokens.size(), false) {}

  llvm::Expected<Understood> read();
  std::vector<const Operation *> nearest(size_t count) const;

private:
  llvm::Error findType();
  bool describesNext(const Match &match, const Match &next) const;
  bool joinsOperands(const Span &span) const;
  void findModifiers();
  bool appliedAgain(const Span &a, const Span &b) const;
  std::vector<Match> allMatches() const;
  double offers(const Operation &op) const;
  llvm::Error chooseOperations();
  llvm::Error orderStages(std::vector<Match> parts);
  llvm::Error applyModifiers();
  llvm::Error assignNumbers();
  llvm::Error readFixedFilter();
  llvm::Error assignShapes();
  bool assignBeside(size_t at);
  bool setNumber(const std::string &name, double value, size_t at);
  llvm::Error checkSizes();
  llvm::Error checkWords();
  llvm::Error refuse(const std::string &why) const;
  void use(const Span &span) {
    for (size_t at : span.at)
      used[at] = true;
  }
  struct Named {
    std::string name;
    const std::vector<std::string> *words;
    double *target = nullptr; ///< of a real
  };
  std::vector<Named> numbersWanted();

  const Library &library;
  const Vocabulary &vocabulary;
  Index index;
  std::vector<Token> tokens;
  std::vector<bool> used;
  std::string type;
  std::vector<Modifier> modifiers;
  Match heavy;
  std::vector<Span> stageSpans;
  Understood result;
  std::map<std::string, bool> given; ///< sizes and reals that the request names
};

} // namespace

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

/// The longest phrase at each place wins.
llvm::Error Reader::findType() {
  for (size_t at = 0; at < tokens.size(); ++at) {
    std::string best;
    Span span;
    for (const auto &[name, phrases] : vocabulary.types)
      for (const std::vector<std::string> &phrase : phrases)
        if (std::optional<Span> found = matchPhrase(tokens, at, phrase, 0, used))
          if (found->at.size() > span.at.size())
            best = name, span = *found;
    if (best.empty())
      continue;
    size_t next = span.at.back() + 1;
    bool ofIndices = next < tokens.size() && (tokens[next].text == "index" || tokens[next].text == "label" || tokens[next].text == "id" || tokens[next].text == "key");
    use(span);
    if (ofIndices)
      continue;
    if (!type.empty() && type != best)
      return refuse("it names two types, " + type + " and " + best);
    type = best;
  }
  return llvm::Error::success();
}

/// "A times transposed B" is not "A transposed".
bool Reader::joinsOperands(const Span &span) const {
  for (size_t at = span.at.front(); at < span.at.back(); ++at) {
    const Token &token = tokens[at];
    if (!llvm::is_contained(span.at, at) && (token.text == "multiply" || token.raw == "by" || token.raw == "and" || token.raw == "with"))
      return true;
  }
  return false;
}

void Reader::findModifiers() {
  for (size_t at = 0; at < tokens.size(); ++at) {
    // All that match here: which one is meant depends on what the operation offers.
    for (const auto &[name, phrases] : vocabulary.modifiers) {
      if (name == "cumulative" && (tokens[at].raw == "run" || tokens[at].raw == "runs")) // one form with "running"
        continue;
      std::optional<Span> best;
      for (const std::vector<std::string> &phrase : phrases)
        if (std::optional<Span> found = matchPhrase(tokens, at, phrase, phrase.size() > 1 ? 1 : 0, used))
          if (!joinsOperands(*found) && (!best || found->at.size() > best->at.size()))
            best = found;
      if (best)
        modifiers.push_back({name, *best});
    }
    // "row sums", "the maximum of the columns"; not "300 rows" nor "row vector".
    const Token &token = tokens[at];
    bool counted = at && !tokens[at - 1].values.empty();
    StringRef next = at + 1 < tokens.size() ? StringRef(tokens[at + 1].text) : "";
    if ((token.text == "row" || token.text == "column") && !counted && next != "vector" && next != "major" &&
        next != "=" && next != "index" && next != "count" && (next.empty() || next[0] != '#'))
      modifiers.push_back({token.text, Span{{at}}, true});
  }
}

static bool choiceOffers(const Operation &op, const std::string &modifier) {
  if (modifier == "batched" && llvm::any_of(op.sizes, [](const Size &size) { return llvm::is_contained(size.words, "batch"); }))
    return true;
  return llvm::is_contained(op.always, modifier) ||
         llvm::any_of(op.choices, [&](const Choice &c) { return llvm::is_contained(c.values, modifier); });
}

/// How well what was said beside the name fits.
double Reader::offers(const Operation &op) const {
  double score = 0;
  for (const Modifier &modifier : modifiers)
    score += choiceOffers(op, modifier.name) ? 1.0 : op.isStage || modifier.soft ? 0 : -0.7;
  if (!type.empty() && !llvm::is_contained(op.types, type))
    score -= 1;
  for (const Token &token : tokens)
    if (token.isShape() && llvm::any_of(op.shapes, [&](const ShapeRule &rule) {
          return llvm::any_of(rule.shapes, [&](auto &shape) { return shape.size() == token.values.size(); });
        }))
      score += 0.3;
  return score;
}

std::vector<Match> Reader::allMatches() const {
  std::vector<Match> result;
  for (const Operation &op : library.operations()) {
    if (op.isFamily || op.isSnippet)
      continue;
    if (llvm::any_of(op.notWith, [&](const std::string &word) {
          std::vector<std::string> phrase = vocabulary.words(word);
          for (size_t at = 0; at < tokens.size(); ++at)
            if (matchPhrase(tokens, at, phrase, 0, std::vector<bool>(tokens.size(), false)))
              return true;
          return false;
        }))
      continue;
    // A reduction along an axis is meant only where one is named.
    if (op.definitions.count("suffix") &&
        llvm::none_of(modifiers, [](const Modifier &m) { return m.name == "row" || m.name == "column"; }))
      continue;
    double fits = offers(op) + 0.05 * index.bm25(&op, tokens);
    for (std::vector<std::string> phrase : index.phrases(&op))
      for (bool reversed : {false, true}) {
        if (reversed && (phrase.size() != 2 || phrase[0] == "#" || phrase[1] == "#"))
          break;
        if (reversed)
          std::reverse(phrase.begin(), phrase.end());
        for (size_t at = 0; at < tokens.size(); ++at) {
          std::optional<Span> span = matchPhrase(tokens, at, phrase, 6, used);
          if (!span)
            continue;
          double score = fits - 0.15 * double(span->at.back() - span->at.front() + 1 - phrase.size()) - (reversed ? 0.5 : 0);
          for (const std::string &word : phrase)
            score += index.idf(word);
          result.push_back({&op, *span, score});
        }
      }
  }
  llvm::stable_sort(result, [](const Match &a, const Match &b) { return a.score > b.score; });
  return result;
}

static bool overlaps(const Span &a, const Span &b) {
  return llvm::any_of(a.at, [&](size_t at) { return llvm::is_contained(b.at, at); });
}

/// "add y, then add z": the same stage twice. Otherwise two phrases say the same.
bool Reader::appliedAgain(const Span &a, const Span &b) const {
  for (size_t at = std::min(a.at.back(), b.at.back()); at < std::max(a.at.front(), b.at.front()); ++at)
    if (tokens[at].raw == "then" || tokens[at].raw == "followed" || tokens[at].raw == "twice")
      return true;
  return false;
}

llvm::Error Reader::chooseOperations() {
  std::vector<Match> matches = allMatches();
  if (matches.empty())
    return refuse("no operation is recognized");
  std::vector<Match> parts;
  std::vector<bool> taken(tokens.size(), false);
  std::string second;
  // The heaviest first: a stage that is part of a longer name must not hide it, and the other way round.
  for (const Match &match : matches) {
    if (llvm::any_of(match.span.at, [&](size_t at) { return taken[at]; }))
      continue;
    // A modifier that the operation offers ("transposed") is left to applyModifiers.
    if (heavy.op && match.op != heavy.op && llvm::any_of(modifiers, [&](const Modifier &modifier) {
          return !modifier.soft && choiceOffers(*heavy.op, modifier.name) && overlaps(modifier.span, match.span);
        }))
      continue;
    bool elaborates = false;
    for (const Match &part : parts)
      elaborates |= part.op == match.op && !(match.op->isStage && appliedAgain(part.span, match.span));
    if (heavy.op) // words that its own description has: "softmax: subtract the maximum, exponentiate, …"
      elaborates |= llvm::all_of(match.span.at, [&](size_t at) { return index.mentions(heavy.op, tokens[at].text); });
    if (!elaborates && heavy.op && !match.op->isStage) {
      if (second.empty())
        second = match.op->name;
      continue;
    }
    for (size_t at : match.span.at)
      taken[at] = tokens[at].values.empty(); // numbers are read later
    if (elaborates)
      continue;
    parts.push_back(match);
    if (!match.op->isStage)
      heavy = match;
  }
  if (!second.empty())
    return refuse("it names two operations, " + heavy.op->name + " and " + second +
                  ", and only element-wise stages can be fused with another operation");
  for (size_t at = 0; at < tokens.size(); ++at)
    used[at] = used[at] || taken[at];
  llvm::sort(parts, [](const Match &a, const Match &b) { return a.first() < b.first(); });
  return orderStages(std::move(parts));
}

/// "maximum absolute difference": the maximum of the absolute value of the difference.
bool Reader::describesNext(const Match &match, const Match &next) const {
  if (next.first() != match.span.at.back() + 1)
    return false;
  return match.op->isStage ? match.op->name == "abs" || match.op->name == "square" : match.op->fusesBefore && match.op->group == "Reductions";
}

/// "f of g" and "f after g" apply g first; "f then g", "f and g" apply f first. The last such word before g decides.
llvm::Error Reader::orderStages(std::vector<Match> parts) {
  std::vector<std::vector<Match>> segments(1);
  for (size_t i = 0; i < parts.size(); ++i) {
    bool nested = i > 0 && describesNext(parts[i - 1], parts[i]);
    if (i > 0)
      for (size_t at = parts[i - 1].span.at.back() + 1; at < parts[i].first(); ++at) {
        const std::string &word = tokens[at].raw;
        if (word == "of" || word == "to" || word == "on" || word == "after")
          nested = !(word == "after" && at + 1 < tokens.size() && (tokens[at + 1].raw == "that" || tokens[at + 1].raw == "which"));
        else if (word == "then" || word == "and" || word == "with" || word == "followed" || word == "+" || word == "," ||
                 word == "plus" || word == "before" || word == "that" || word == "." || word == ";")
          nested = false;
      }
    if (nested)
      segments.emplace_back();
    segments.back().push_back(parts[i]);
  }
  std::vector<Match> order;
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment)
    order.insert(order.end(), segment->begin(), segment->end());
  bool seen = false;
  for (const Match &match : order) {
    if (match.op == heavy.op && !match.op->isStage) {
      seen = true;
      continue;
    }
    stageSpans.push_back(match.span);
    Stage stage;
    stage.operation = match.op;
    for (const Real &real : match.op->reals)
      stage.reals[real.name] = real.value;
    (seen ? result.after : result.before).push_back(std::move(stage));
  }
  auto perColumn = [](const Stage &stage) {
    return llvm::any_of(stage.operation->operands, [](const Operand &o) { return o.shape == "column"; });
  };
  if (!heavy.op)
    heavy.op = library.find(llvm::any_of(result.before, perColumn) ? "map2d" : "map");
  result.operation = heavy.op;
  if (!result.before.empty() && !heavy.op->fusesBefore)
    return refuse(heavy.op->name + " takes no element-wise stage before it (" + result.before[0].operation->name + ")");
  if (!result.after.empty() && !heavy.op->fusesAfter)
    return refuse(heavy.op->name + " takes no element-wise stage after it (" + result.after[0].operation->name + ")");
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages)
      if (perColumn(stage) && heavy.op->columnIndex.empty())
        return refuse(heavy.op->name + " has no columns for " + stage.operation->name);
  return llvm::Error::success();
}

llvm::Error Reader::applyModifiers() {
  for (const Choice &choice : heavy.op->choices)
    result.choices[choice.name] = choice.values.front();
  std::map<std::string, std::string> chosen;
  auto apply = [&](const Modifier &modifier) -> llvm::Error {
    for (const Choice &choice : heavy.op->choices)
      if (llvm::is_contained(choice.values, modifier.name)) {
        auto [it, isNew] = chosen.insert({choice.name, modifier.name});
        if (!isNew && it->second != modifier.name)
          return refuse("it asks for both " + it->second + " and " + modifier.name);
        result.choices[choice.name] = modifier.name;
      }
    use(modifier.span);
    return llvm::Error::success();
  };
  // A modifier may share a word with the name of the operation: "sort … in descending order".
  auto free = [&](const Modifier &modifier) {
    return overlaps(modifier.span, heavy.span) || llvm::any_of(modifier.span.at, [&](size_t at) { return !used[at]; });
  };
  for (const Modifier &modifier : modifiers)
    if (!modifier.soft && choiceOffers(*heavy.op, modifier.name) && free(modifier))
      if (llvm::Error error = apply(modifier))
        return error;
  for (const Modifier &modifier : modifiers)
    if (modifier.soft && choiceOffers(*heavy.op, modifier.name) && free(modifier) && chosen.empty())
      if (llvm::Error error = apply(modifier))
        return error;
  // "12 nonzeros per row" of an operation that knows no axes says nothing about one.
  bool hasAxis = choiceOffers(*heavy.op, "row") || choiceOffers(*heavy.op, "column");
  for (const Modifier &modifier : modifiers)
    if (!modifier.soft && (hasAxis || (modifier.name != "row" && modifier.name != "column")) && !choiceOffers(*heavy.op, modifier.name) && llvm::none_of(modifier.span.at, [&](size_t at) { return used[at]; }))
      return refuse((result.before.empty() || !heavy.op->says.empty() ? heavy.op->name : result.before[0].operation->name) +
                    " is not offered with '" + modifier.name + "'");
  for (const Modifier &modifier : modifiers)
    if (!modifier.soft && !hasAxis && (modifier.name == "row" || modifier.name == "column") && modifier.span.at.size() > 1 &&
        heavy.op->sizes.size() == 1 && !index.mentions(heavy.op, modifier.name) && free(modifier))
      return refuse(heavy.op->name + " is not offered by " + modifier.name);
  for (const auto &[name, phrases] : vocabulary.hints)
    for (const std::vector<std::string> &phrase : phrases)
      for (size_t at = 0; at < tokens.size(); ++at)
        if (std::optional<Span> span = matchPhrase(tokens, at, phrase, 0, used)) {
          use(*span);
          result.notes.push_back("'" + name + "' is a wish about how to compute it, which is left to the search (--optimize)");
        }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::vector<Reader::Named> Reader::numbersWanted() {
  std::vector<Named> result;
  for (auto *stages : {&this->result.before, &this->result.after})
    for (Stage &stage : *stages)
      for (const Real &real : stage.operation->reals)
        result.push_back({real.name, &real.words, &stage.reals[real.name]});
  for (const Real &real : heavy.op->reals)
    result.push_back({real.name, &real.words, &this->result.reals[real.name]});
  for (const Size &size : heavy.op->sizes)
    result.push_back({size.name, &size.words, nullptr});
  return result;
}

bool Reader::setNumber(const std::string &name, double value, size_t at) {
  for (const Named &wanted : numbersWanted()) {
    if (wanted.name != name)
      continue;
    if (wanted.target)
      *wanted.target = value;
    else {
      if (value != std::floor(value) || std::abs(value) > 1e15)
        return false;
      result.sizes[name] = int64_t(value);
    }
    given[name] = true;
    used[at] = true;
    return true;
  }
  return false;
}

/// "300 rows", "k = 16", "batch of 8", "scale by 2.5".
bool Reader::assignBeside(size_t at) {
  double value = tokens[at].values[0];
  struct Candidate {
    std::string name;
    Span span;
    int rank = 0;
  };
  std::optional<Candidate> best;
  auto offer = [&](const std::string &name, const Span &span, int rank) {
    if (!given[name] && (!best || rank > best->rank))
      best = Candidate{name, span, rank};
  };
  static const std::vector<std::string> between = {"=", "of", "is", "size", "equal", "to", "a", "length", "be", "at", "width", "number", "count", "value"};
  std::vector<bool> none(tokens.size(), false);
  for (const Named &wanted : numbersWanted())
    for (const std::string &text : *wanted.words) {
      std::vector<std::string> phrase = vocabulary.words(text);
      // After the number, perhaps with one word between: "1000 float values", "8 attention heads".
      for (size_t next : {at + 1, at + 2})
        if (next < tokens.size() && (next == at + 1 || (!tokens[at + 1].isNumber() && tokens[at + 1].raw != "," && tokens[at + 1].raw != "and" && tokens[at + 1].raw != "of" && tokens[at+1].raw != "with")))
          if (std::optional<Span> span = matchPhrase(tokens, next, phrase, 0, none))
            offer(wanted.name, *span, (next == at + 1 ? 6 : 3) + int(phrase.size()));
      // Before it: "k = 16", "window size of 5".
      for (size_t back = 1; back <= 4 && back <= at; ++back) {
        size_t begin = at - back;
        if (std::optional<Span> span = matchPhrase(tokens, begin, phrase, 0, none)) {
          bool onlyBetween = true, equals = false;
          for (size_t i = span->at.back() + 1; i < at; ++i) {
            onlyBetween &= llvm::is_contained(between, tokens[i].raw);
            equals |= tokens[i].raw == "=";
          }
          if (span->at.back() < at && onlyBetween)
            offer(wanted.name, *span, (equals ? 10 : 5) - int(at - span->at.back()) + int(phrase.size()));
        }
      }
    }
  // "add two vectors" counts the vectors.
  if (!best || (tokens[at].spelled && best->name == "n"))
    return false;
  if (!setNumber(best->name, value, at))
    return false;
  use(best->span);
  return true;
}

/// Sets the dimensions of `rule` from the shape tokens `at`; false when they contradict each other.
static bool readShapes(const ShapeRule &rule, const std::vector<Token> &tokens, const std::vector<size_t> &at,
                       std::map<std::string, int64_t> &out) {
  if (rule.shapes.size() != at.size())
    return false;
  for (size_t s = 0; s < at.size(); ++s) {
    const std::vector<double> &values = tokens[at[s]].values;
    if (values.size() != rule.shapes[s].size())
      return false;
    for (size_t d = 0; d < values.size(); ++d) {
      if (values[d] != std::floor(values[d]))
        return false;
      llvm::SmallVector<StringRef, 4> names;
      StringRef(rule.shapes[s][d]).split(names, '=');
      for (StringRef name : names) {
        auto [it, isNew] = out.insert({name.str(), int64_t(values[d])});
        if (!isNew && it->second != int64_t(values[d]))
          return false;
      }
    }
  }
  return true;
}

/// "gaussian blur 5x5" tells the size of the filter; an operation whose filter is fixed has one size only.
llvm::Error Reader::readFixedFilter() {
  auto hasSize = [&](StringRef name) { return llvm::any_of(heavy.op->sizes, [&](const Size &s) { return s.name == name; }); };
  if (!hasSize("height") || !hasSize("width") || hasSize("window") || hasSize("kh") || hasSize("filter"))
    return llvm::Error::success();
  for (size_t at = 0; at < tokens.size(); ++at) {
    const std::vector<double> &values = tokens[at].values;
    if (used[at] || values.size() != 2 || values[0] != values[1] || values[0] > 11 || int(values[0]) % 2 == 0)
      continue;
    if (values[0] != 3 || !StringRef(heavy.op->title).contains("3 x 3"))
      return refuse("a filter of " + tokens[at].raw + " is not offered for " + heavy.op->name);
    used[at] = true;
  }
  return llvm::Error::success();
}

llvm::Error Reader::assignShapes() {
  if (llvm::Error error = readFixedFilter())
    return error;
  auto beside = [&](size_t at, const std::vector<std::string> &words) {
    for (const std::string &text : words) {
      std::vector<std::string> phrase = vocabulary.words(text);
      for (size_t begin = at > 4 ? at - 4 : 0; begin <= std::min(at + 2, tokens.size() - 1); ++begin)
        if (begin != at)
          if (std::optional<Span> span = matchPhrase(tokens, begin, phrase, 0, std::vector<bool>(tokens.size(), false))) {
            bool cut = false; // "a 5x5 kernel", "kernel size of 5x5"; not "a 5x5 kernel on a 64x48 image"
            static const std::set<std::string> between = {"size", "of", "=", "is", "shape", "a"};
            for (size_t i = begin > at ? at + 1 : span->at.back() + 1; i < std::max(at, begin); ++i)
              cut |= begin > at ? !tokens[i].values.empty() || vocabulary.isFiller(tokens[i].text) : !between.count(tokens[i].raw);
            if (!cut)
              return true;
          }
    }
    return false;
  };
  auto take = [&](const std::vector<size_t> &at, const std::map<std::string, int64_t> &values) {
    for (const auto &[name, value] : values)
      setNumber(name, double(value), at[0]);
    for (size_t i : at)
      used[i] = true;
  };
  auto applies = [&](const ShapeRule &rule) {
    auto [choice, value] = StringRef(rule.when).split('=');
    return rule.when.empty() || result.choices[choice.str()] == value;
  };
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (!tokens[at].isShape() || used[at])
      continue;
    bool taken = false;
    for (const ShapeRule &rule : heavy.op->shapes) {
      std::map<std::string, int64_t> values;
      if (!taken && !rule.words.empty() && beside(at, rule.words) && readShapes(rule, tokens, {at}, values)) {
        take({at}, values);
        taken = true;
      }
    }
    // "clamp to [0, 6]"
    std::vector<Named> reals;
    for (const Named &wanted : numbersWanted())
      if (wanted.target && !given[wanted.name])
        reals.push_back(wanted);
    if (!taken && tokens[at].values.size() == 2 && reals.size() == 2 && tokens[at].values[0] < tokens[at].values[1] && tokens[at].values[0] <= 1 && tokens[at].values[1] < 1024) {
      setNumber(reals[0].name, tokens[at].values[0], at);
      setNumber(reals[1].name, tokens[at].values[1], at);
      taken = true;
    }
    if (!taken && !open.empty() && tokens[at].values == tokens[open.back()].values && heavy.op->shapes.size() && llvm::none_of(heavy.op->shapes, [&](const ShapeRule &r) { return r.words.empty() && r.shapes.size() > 1; })) {
      used[at] = true; // the same shape again: "two 64x64 images"
      continue;
    }
    if (!taken)
      open.push_back(at);
  }
  if (open.empty())
    return llvm::Error::success();
  for (const ShapeRule &rule : heavy.op->shapes) {
    std::map<std::string, int64_t> values;
    if (rule.words.empty() && applies(rule) && readShapes(rule, tokens, open, values)) {
      take(open, values);
      return llvm::Error::success();
    }
  }
  // An operation on a plain sequence takes a matrix's elements one after the other.
  if (open.size() == 1 && !heavy.op->sizes.empty() && heavy.op->sizes[0].name == "n" &&
      llvm::none_of(heavy.op->shapes, [](const ShapeRule &rule) { return rule.words.empty() && rule.shapes[0].size() > 1; })) {
    double product = 1;
    for (double v : tokens[open[0]].values)
      product *= v;
    if (setNumber("n", product, open[0]))
      return llvm::Error::success();
  }
  return refuse("the shape " + tokens[open[0]].raw + " does not fit " + heavy.op->name);
}

llvm::Error Reader::assignNumbers() {
  for (const Size &size : heavy.op->sizes)
    result.sizes[size.name] = size.value;
  for (const Real &real : heavy.op->reals)
    result.reals[real.name] = real.value;
  for (bool spelled : {false, true}) // "the two closest among 1000 points"
    for (size_t at = 0; at < tokens.size(); ++at)
      if (tokens[at].isNumber() && !used[at] && tokens[at].spelled == spelled)
        assignBeside(at);
  if (llvm::Error error = assignShapes())
    return error;
  for (size_t at = 0; at < tokens.size(); ++at) // "of points in 3D"
    if (!used[at] && !given["dim"] && (tokens[at].raw == "2d" || tokens[at].raw == "3d"))
      setNumber("dim", tokens[at].raw[0] - '0', at);
  // "a vector of 300 and a vector of 200 elements"
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at)
    if (tokens[at].isNumber() && !used[at] && !tokens[at].spelled)
      open.push_back(at);
  for (const ShapeRule &rule : heavy.op->shapes) {
    std::map<std::string, int64_t> values;
    if (open.size() > 1 && rule.words.empty() && rule.when.empty() && readShapes(rule, tokens, open, values)) {
      for (const auto &[name, value] : values)
        setNumber(name, double(value), open[0]);
      for (size_t at : open)
        used[at] = true;
      break;
    }
  }
  // "of 1M floats": the number without a word of its own is the size, where there is one such size; or the constant.
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (!tokens[at].isNumber() || used[at] || tokens[at].spelled)
      continue;
    double value = tokens[at].values[0];
    std::vector<Named> wanted = numbersWanted();
    bool done = false;
    bool integral = value == std::floor(value) && value >= 1;
    for (const ShapeRule &rule : heavy.op->shapes) {
      std::map<std::string, int64_t> values;
      if (!done && integral && value >= 16 && rule.words.empty() && rule.when.empty() && readShapes(rule, tokens, {at}, values) &&
          llvm::none_of(values, [&](auto &v) { return given[v.first]; })) {
        for (const auto &[name, v] : values)
          done |= setNumber(name, double(v), at);
      }
    }
    for (const Named &named : wanted)
      if (!done && named.target && !given[named.name] && (!integral || value < 1024))
        done = setNumber(named.name, value, at);
    if (!done && integral && value >= 32 && heavy.op->sizes.size() && !given[heavy.op->sizes[0].name] && heavy.op->sizes[0].name == "n")
      done = setNumber("n", value, at);
    if (!done)
      return refuse("what is " + tokens[at].raw + " for " + heavy.op->name + "?");
  }
  return checkSizes();
}

llvm::Error Reader::checkSizes() {
  for (const Size &size : heavy.op->sizes) {
    int64_t value = result.sizes[size.name];
    if (value < size.least || value > size.most)
      return refuse(heavy.op->name + " takes " + size.name + " from " + std::to_string(size.least) + " to " +
                    std::to_string(size.most) + ", not " + std::to_string(value));
    if (size.powerOfTwo && (value & (value - 1)))
      return refuse(heavy.op->name + " wants a power of two for " + size.name + ", not " + std::to_string(value));
  }
  double elements = 1;
  for (const Buffer &buffer : heavy.op->buffers) {
    elements = 1;
    llvm::SmallVector<StringRef, 4> factors;
    StringRef(buffer.count).split(factors, '*');
    for (StringRef factor : factors) {
      auto it = result.sizes.find(factor.trim().str());
      if (it != result.sizes.end())
        elements *= double(it->second);
    }
    if (elements > 4e9)
      return refuse("an array of " + llvm::formatv("{0:f0}", elements).str() + " elements is more than it can index");
  }
  return llvm::Error::success();
}

llvm::Error Reader::checkWords() {
  for (size_t at = 0; at < tokens.size(); ++at) {
    const Token &token = tokens[at];
    if (used[at] || token.isShape() || (token.isNumber() && !token.spelled))
      continue;
    bool elementwise = token.text == "elementwise" || (token.text == "wise" && at > 0 && tokens[at - 1].text == "element");
    if (elementwise && heavy.op->group == "Reductions" && result.before.empty())
      return refuse("an element-wise " + heavy.op->name + " is none of its forms");
    if (vocabulary.isForeign(token.text))
      return refuse("'" + token.raw + "' is nothing that " + heavy.op->name + " or another operation offers");
    bool filler = vocabulary.isFiller(token.text) || token.text.size() < 2;
    if (token.spelled && !filler && !StringRef(heavy.op->name).contains(std::to_string(int64_t(token.values[0])))) // stencil-7point
      return refuse("what '" + token.raw + "' counts is not clear");
    bool known = index.mentions(heavy.op, token.text);
    for (const auto *stages : {&result.before, &result.after})
      for (const Stage &stage : *stages)
        known |= index.mentions(stage.operation, token.text);
    if (filler || known)
      continue;
    for (const Named &wanted : numbersWanted())
      for (const std::string &words : *wanted.words)
        known |= llvm::is_contained(vocabulary.words(words), token.text);
    if (known)
      continue;
    // An unknown word right before the name changes what is meant: "wavelet transform", "topological sort".
    bool beforeName = !heavy.span.at.empty() && heavy.span.at.front() == at + 1;
    for (const Span &span : stageSpans)
      beforeName |= span.at.front() == at + 1;
    if (beforeName)
      return refuse("'" + token.raw + " " + tokens[at + 1].raw + "' is not in the library");
    // A word of other operations' names that this one has no use for: something else may be meant ("matrix times its transpose").
    if (index.names(token.text))
      return refuse("what '" + token.raw + "' has to do with " + heavy.op->name + " is not clear");
    result.ignored.push_back(token.raw);
  }
  return llvm::Error::success();
}

llvm::Expected<Understood> Reader::read() {
  if (tokens.empty())
    return makeError("an empty request; say what the kernel is to compute, e.g. \"row-wise softmax of a float matrix\"");
  if (llvm::Error error = findType())
    return std::move(error);
  for (const Token &token : tokens)
    if (vocabulary.isForeign(token.text))
      return refuse("nothing is offered for '" + token.raw + "'");
  findModifiers();
  if (llvm::Error error = chooseOperations())
    return std::move(error);
  std::vector<std::string> types = heavy.op->types;
  std::string limiting = heavy.op->name;
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages) {
      llvm::erase_if(types, [&](const std::string &t) { return !llvm::is_contained(stage.operation->types, t); });
      if (!llvm::is_contained(stage.operation->types, type))
        limiting = stage.operation->name;
    }
  if (types.empty())
    return refuse("its parts have no type in common");
  if (!type.empty() && !llvm::is_contained(types, type))
    return refuse(limiting + " is not offered for " + type + " (but for " + llvm::join(types, ", ") + ")");
  result.type = type.empty() ? types.front() : type;
  if (llvm::Error error = applyModifiers())
    return std::move(error);
  if (llvm::Error error = assignNumbers())
    return std::move(error);
  if (llvm::Error error = checkWords())
    return std::move(error);
  return std::move(result);
}

llvm::Expected<Understood> optiml::gen::understand(StringRef request, const Library &library,
                                                   const Vocabulary &vocabulary) {
  if (request.size() > 2000)
    return makeError("a request of {0} characters; 2000 are the most", request.size());
  return Reader(request, library, vocabulary).read();
}

std::vector<const Operation *> optiml::gen::nearestOperations(StringRef request, const Library &library,
                                                              const Vocabulary &vocabulary, size_t count) {
  return Reader(request.take_front(2000), library, vocabulary).nearest(count);
}

std::string Understood::explain() const {
  std::string text = "operation: " + operation->name + " (" + operation->title + ")\ntype: " + type + "\n";
  for (const Size &size : operation->sizes)
    text += "size: " + size.name + " = " + std::to_string(sizes.at(size.name)) + "\n";
  for (const auto &[name, value] : reals)
    text += "constant: " + name + " = " + llvm::formatv("{0}", value).str() + "\n";
  for (const auto &[name, value] : choices)
    text += "choice: " + name + " = " + value + "\n";
  for (const auto &[which, stages] : {std::pair("before", &before), std::pair("after", &after)})
    for (const Stage &stage : *stages) {
      text += std::string("stage ") + which + ": " + stage.operation->name;
      for (const auto &[name, value] : stage.reals)
        text += " " + name + "=" + llvm::formatv("{0}", value).str();
      text += "\n";
    }
  for (const std::string &note : notes)
    text += "note: " + note + "\n";
  if (!ignored.empty())
    text += "not used: " + llvm::join(ignored, ", ") + "\n";
  return text;
}
