//===- Understand.cpp - from words to an operation, its sizes and stages --===//
//
// Phrases of the operations are looked for among the canonical words; the best match by weight (rare words count more), nearness and
// BM25 over the documentation is taken, then the next that does not overlap. At most one of them may be more than an
// element-wise stage. What the request says beyond that (type, layout, numbers) must fit what was chosen, or the request is
// refused: nothing else than asked is ever written.
//
//===----------------------------------------------------------------------===//
#include "Reader.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

/// "add y, then add z": the same stage twice. Otherwise two phrases say the same.
bool Reader::appliedAgain(const Span &a, const Span &b) const {
  for (size_t at = std::min(a.at.back(), b.at.back()); at < std::max(a.at.front(), b.at.front()); ++at)
    if (tokens[at].raw == "then" || tokens[at].raw == "followed" || tokens[at].raw == "twice")
      return true;
  return false;
}

/// "matmul with the second matrix transposed": the transposition is a form in which another operation that is named,
/// too, comes.
bool Reader::isFormOfAnother(const Match &match, const std::vector<Match> &matches) const {
  auto offersForm = [&](const Operation &op) {
    return llvm::any_of(modifiers, [&](const Modifier &modifier) {
      return !modifier.soft && overlaps(modifier.span, match.span) &&
             llvm::any_of(op.choices, [&](const Choice &c) { return llvm::is_contained(c.values, modifier.name); });
    });
  };
  return !match.op->isStage && llvm::any_of(matches, [&](const Match &other) {
    return !other.op->isStage && other.op != match.op && other.score + 2 > match.score &&
           !overlaps(other.span, match.span) && offersForm(*other.op);
  });
}

/// Whether all words name sizes of the operation that have their numbers beside them: "1000 vertices, average degree 8".
bool Reader::isSizeName(const Operation &op, const Span &span) const {
  auto isValue = [&](size_t at) { return at < tokens.size() && tokens[at].isNumber(); };
  return llvm::all_of(span.at, [&](size_t at) {
    for (const std::vector<std::string> &phrase : index.sizeNames(&op))
      for (size_t begin = at > 2 ? at - 2 : 0; begin <= at; ++begin) {
        std::optional<Span> name = matchPhrase(tokens, begin, phrase, 0, used);
        if (!name || !llvm::is_contained(name->at, at))
          continue;
        size_t next = name->at.back() + 1;
        bool isLinked = next < tokens.size() && (tokens[next].raw == "of" || tokens[next].raw == "=");
        if (isValue(next + isLinked) || (span.at.size() > 1 && begin > 0 && isValue(begin - 1)))
          return true;
      }
    return false;
  });
}

/// Whether a stage is part of what the operation's title says it computes: sigmoid of "x * sigmoid(y)".
static bool titleHas(const Operation &op, const Operation &stage) {
  if (&op == &stage)
    return false;
  static const std::map<std::string, std::string> signs = {
      {"multiply", " * "}, {"scale", " * "}, {"add", " + "},    {"add-constant", " + "},
      {"subtract", " - "}, {"divide", " / "}, {"reciprocal", "1 / "}, {"negate", "-x"}};
  auto sign = signs.find(stage.name);
  StringRef title = op.title;
  return sign == signs.end() ? title.contains(stage.name + "(") || title.contains(stage.name + " of") : title.contains(sign->second);
}

/// "z-score using the median": no way to compute it, but of something else.
bool Reader::isOfAnother(const Match &match) const {
  size_t at = match.first();
  return at > 1 && tokens[at - 1].raw == "the" && (tokens[at - 2].raw == "using" || tokens[at - 2].raw == "with") && match.span.at.size() == 1 &&
         (match.op->group == "Reductions" || match.op->group == "Sorting") && !index.mentions(heavy.op, tokens[at].text);
}

/// "square, then variance", "variance of the squares": a step of its own, whatever the description of another has.
bool Reader::isStep(const Match &stage) const {
  size_t begin = stage.first(), next = stage.span.at.back() + 1;
  begin -= begin > 0 && tokens[begin - 1].raw == "the";
  return next == stage.first() + stage.span.at.size() &&
         ((next < tokens.size() && tokens[next].raw == "then") || (begin > 0 && tokens[begin - 1].raw == "then") ||
          (begin > 0 && tokens[begin - 1].raw == "of" && begin != stage.first() && llvm::is_contained(heavy.span.at, begin - 2)));
}

llvm::Error Reader::chooseOperations() {
  if (recalled)
    return useRecalled();
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
    if (!heavy.op && isFormOfAnother(match, matches))
      continue;
    // A modifier that the operation offers ("transposed") is left to applyModifiers.
    if (heavy.op && llvm::any_of(modifiers, [&](const Modifier &modifier) {
          bool isChosen = match.op == heavy.op
                              ? llvm::any_of(heavy.op->choices,
                                             [&](const Choice &c) { return llvm::is_contained(c.values, modifier.name); })
                              : choiceOffers(*heavy.op, modifier.name);
          return !modifier.soft && isChosen && overlaps(modifier.span, match.span);
        }))
      continue;
    if (heavy.op && match.op != heavy.op &&
        (namesData(match) || (!match.op->isStage && ((isAside(match.span) && !isOfAnother(match)) || isDataName(*match.op, match.span))))) {
      for (size_t at : match.span.at)
        taken[at] = tokens[at].values.empty();
      continue;
    }
    // "softshrink with threshold 0.2": a constant of what was named before
    auto hasReals = [](const Match &part) { return !part.op->reals.empty(); };
    size_t begin = match.first(), end = match.span.at.back() + 1;
    begin -= begin > 1 && (tokens[begin - 1].raw == "a" || tokens[begin - 1].raw == "the");
    end += end + 1 < tokens.size() && (tokens[end].raw == "of" || tokens[end].raw == "=");
    if (match.op->isStage && match.span.at.size() == 1 && begin > 0 && tokens[begin - 1].raw == "with" &&
        end < tokens.size() && tokens[end].isNumber() && llvm::any_of(parts, hasReals)) {
      taken[match.first()] = true;
      continue;
    }
    // "Sobel masks"
    if (heavy.op && match.op->name == "mask" && !heavy.op->fusesAfter && heavy.span.at.back() + 1 == match.first()) {
      taken[match.first()] = true;
      continue;
    }
    // "mandelbrot, max 500 iterations", "with an average degree of 8"
    if (heavy.op && isSizeName(*heavy.op, match.span)) {
      for (size_t at : match.span.at)
        taken[at] = tokens[at].values.empty();
      continue;
    }
    bool elaborates = false;
    for (const Match &part : parts)
      elaborates |= part.op == match.op && (depthAt(match.first()) != depthAt(part.first()) ||
                                            !(match.op->isStage && appliedAgain(part.span, match.span)));
    // "argmax and max of an array": two results
    auto isJoined = [&](const Span &first, const Span &next) {
      size_t at = first.at.back() + 1;
      return at + 1 < tokens.size() && next.at.front() > at && (tokens[at].raw == "and" || tokens[at].raw == "/") &&
             (next.at.front() == at + 1 || (next.at.front() == at + 2 && tokens[at + 1].raw == "the"));
    };
    bool areTwo = heavy.op && !match.op->isStage && match.op != heavy.op && heavy.span.at.size() == 1 && match.span.at.size() == 1 &&
                  match.op->group == heavy.op->group && (isJoined(heavy.span, match.span) || isJoined(match.span, heavy.span));
    // "the mean of the elements above the median": one of the other
    bool isApplied = heavy.op && !match.op->isStage && match.op != heavy.op && match.span.at.back() < heavy.first() &&
                     depthAt(match.first()) == depthAt(heavy.first()) && match.op->group == "Reductions";
    if (isApplied) {
      bool hasOf = false, ends = false;
      for (size_t at = match.span.at.back() + 1; at < heavy.first(); ++at) {
        hasOf |= tokens[at].raw == "of";
        ends |= tokens[at].raw == "," || tokens[at].raw == ";" || tokens[at].raw == "." || tokens[at].explains || tokens[at].raw == "and";
      }
      isApplied = hasOf && !ends && !heavy.span.at.empty();
    }
    // "softmax of every row, then sum of each row": a step of its own
    size_t lead = match.first() - (match.first() > 0 && tokens[match.first() - 1].raw == "the");
    bool isNext = heavy.op && !match.op->isStage && match.op != heavy.op && lead > 0 &&
                  tokens[lead - 1].raw == "then" &&
                  !explainsAgain(heavy.span.at.empty() ? 0 : heavy.first(), match.first()) && !heavy.span.at.empty() &&
                  heavy.span.at.back() < match.first();
    if (heavy.op && !areTwo && !isApplied && !isNext &&
        !(match.op->isStage &&
          isStep(match))) // words that its own description has: "softmax: subtract the maximum, exponentiate, …"
      elaborates |= llvm::all_of(match.span.at,
                                 [&](size_t at) {
                                   return index.mentions(heavy.op, tokens[at].text) ||
                                          ((at != match.first() || !match.op->isStage) &&
                                           vocabulary.isFiller(tokens[at].text) && tokens[at].text != "product");
                                 }) &&
                    llvm::any_of(match.span.at, [&](size_t at) { return index.mentions(heavy.op, tokens[at].text); });
    if (!elaborates && heavy.op && !match.op->isStage) {
      if (second.empty())
        second = match.op->name;
      continue;
    }
    for (size_t at : match.span.at) // numbers are read later, where they are no part of the name ("1-norm")
      taken[at] = tokens[at].values.empty() ||
                  (tokens[at].isNumber() && !tokens[at].spelled && index.mentions(match.op, tokens[at].raw));
    // "linear layer: gelu(matmul + bias)": the second time tells the order of the stages.
    for (Match &part : parts)
      if (elaborates && part.op == match.op &&
          (((!part.op->isStage || match.first() < part.first()) && depthAt(match.first()) > depthAt(part.first())) ||
           explainsAgain(part.first(), match.first())))
        part.span = match.span;
    // "linear congruential generator: fill an array"
    bool fills = heavy.op && match.op->name == "fill" && heavy.op->group == "Monte Carlo";
    if (elaborates || fills)
      continue;
    parts.push_back(match);
    if (!match.op->isStage)
      heavy = match;
  }
  // "GLU (x times sigmoid of y)": what the operation's own title has
  llvm::erase_if(parts, [&](const Match &inner) {
    return inner.op->isStage && llvm::any_of(parts, [&](const Match &outer) {
             return outer.first() < inner.first() &&
                    (depthAt(outer.first()) < depthAt(inner.first()) || explainsAgain(outer.first(), inner.first())) &&
                    titleHas(*outer.op, *inner.op);
           });
  });
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
  static const std::set<StringRef> articles = {"the", "all", "their", "its"}; // "sum the exponentials"
  static const std::set<StringRef> functions = {"abs", "square", "log", "exp", "sqrt"}; // "log sigmoid"
  size_t begin = match.span.at.back() + 1;
  while (begin < next.first() && articles.count(tokens[begin].raw))
    ++begin;
  if (next.first() != begin)
    return false;
  return match.op->isStage
             ? functions.count(match.op->name) &&
                   (next.op->isStage || (match.op->name != "exp" && match.op->name != "log"))
             : match.op->fusesBefore && (match.op->group == "Reductions" || match.op->definitions.count("suffix"));
}

/// "sum of the exponentials of an array" names the sum by "sum" alone, not by "sum array" around the exponentials.
void Reader::shortenAround(std::vector<Match> &parts) {
  for (Match &part : parts) {
    Span before;
    std::vector<std::string> words;
    for (size_t at : part.span.at)
      if (llvm::none_of(parts, [&](const Match &inside) {
            return &inside != &part && inside.first() > part.first() && inside.first() < at;
          })) {
        before.at.push_back(at);
        words.push_back(tokens[at].text);
      }
    if (before.at.size() < part.span.at.size() && llvm::is_contained(index.phrases(part.op), words)) {
      part.span = before;
      if (part.op == heavy.op)
        heavy.span = before;
    }
  }
}

/// "f of g" and "f after g" apply g first; "f then g", "f and g" apply f first. The last such word before g decides.
llvm::Error Reader::orderStages(std::vector<Match> parts) {
  // "dilate a mask": what a stage takes is data where no stage can be.
  llvm::erase_if(parts, [&](const Match &part) {
    static const std::set<StringRef> articles = {"a", "the", "binary", "of"};
    size_t at = part.first();
    return heavy.op && !heavy.op->fusesBefore && !heavy.op->fusesAfter && part.op->isStage &&
           (!part.op->operands.empty() || part.op->name == "square" || part.op->name == "cube") &&
           part.span.at.size() == 1 && at > 0 &&
           (articles.count(tokens[at - 1].raw) || tokens[at - 1].isShape());
  });
  shortenAround(parts);
  std::vector<std::vector<std::vector<Match>>> groups(
      1, std::vector<std::vector<Match>>(1)); // "g of f, then h" are two groups
  for (size_t i = 0; i < parts.size(); ++i) {
    bool nested = i > 0 && describesNext(parts[i - 1], parts[i]), goesOn = false;
    int calls = 0; // "relu(conv2d(x))"
    if (i > 0)
      for (size_t last = parts[i - 1].span.at.back(), at = last + !isGrammar(tokens[last].raw); at < parts[i].first();
           ++at) {
        const std::string &word = tokens[at].raw;
        calls += (word == "(") - (word == ")");
        if (word == "of" || word == "to" || word == "on" || word == "after" || word == "from")
          nested = !(word == "after" && at + 1 < tokens.size() && (tokens[at + 1].raw == "that" || tokens[at + 1].raw == "which"));
        else if (word == "then" || word == "and" || word == "with" || word == "followed" || word == "+" || word == "," ||
                 word == "plus" || word == "before" || word == "that" || word == "." || word == ";")
          nested = false;
        goesOn |= word == "then" || word == "followed" || word == "finally" || word == "afterwards";
      }
    // "the maximum of two arrays times 3"
    static const std::set<StringRef> postfix = {"times", "plus", "minus"};
    nested &= i == 0 || !postfix.count(tokens[parts[i].first()].raw);
    // "the product of two arrays clipped at zero"
    static const std::set<StringRef> before = {"of", "the", "a", "an", "all", "each", "every", ",", "and", "their", "its"};
    size_t first = parts[i].first();
    nested &= i == 0 || !StringRef(tokens[first].raw).ends_with("ed") || before.count(tokens[first - 1].raw) || parts[i - 1].span.at.back() + 1 >= first ||
              !(tokens[first - 1].text == "array" || tokens[first - 1].text == "vector" || tokens[first - 1].text == "matrix");
    nested |= calls > 0 && tokens[parts[i - 1].span.at.back() + 1].raw == "(";
    if (goesOn && !nested)
      groups.emplace_back(1);
    if (nested)
      groups.back().emplace_back();
    groups.back().back().push_back(parts[i]);
  }
  std::vector<Match> order;
  for (const auto &segments : groups)
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment)
      order.insert(order.end(), segment->begin(), segment->end());
  // "x squared plus y": what stands inside a stage's words comes before it.
  for (size_t i = 0; i + 1 < order.size(); ++i)
    if (order[i].op->isStage && order[i + 1].op->isStage && order[i + 1].first() > order[i].first() &&
        order[i + 1].first() < order[i].span.at.back())
      std::swap(order[i], order[i + 1]);
  bool seen = false;
  for (const Match &match : order) {
    if (match.op == heavy.op && !match.op->isStage) {
      seen = true;
      continue;
    }
    stageSpans.push_back(match.span);
    if (!heavy.span.at.empty() && match.first() > *llvm::min_element(heavy.span.at) &&
        match.first() < *llvm::max_element(heavy.span.at))
      return refuse("what '" + tokens[match.first()].raw + "' has to do with " + heavy.op->name + " is not clear");
    Stage stage;
    stage.operation = match.op;
    for (const Real &real : match.op->reals)
      stage.reals[real.name] = real.value;
    // What only moves elements may as well do so behind the stage.
    bool isMoved = heavy.op && heavy.op->definitions.count("moves") && match.op->operands.empty();
    // "with ReLU on the input A"
    size_t next = match.span.at.back() + 1;
    static const std::set<StringRef> inputs = {"input", "inputs", "operand", "operands"};
    bool onInput = next + 2 < tokens.size() && (tokens[next].raw == "on" || tokens[next].raw == "to") &&
                   (inputs.count(tokens[next + 1].raw) || inputs.count(tokens[next + 2].raw));
    isMoved |= onInput && heavy.op;
    (seen && !isMoved ? result.after : result.before).push_back(std::move(stage));
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

/// The type that was named or that examples show, or the first that all parts are offered for.
llvm::Error Reader::chooseType() {
  // "int8 x int8 -> int32": both inputs, and the result
  bool isOfBytes = (type == "int8" && otherType == "int") || (type == "int" && otherType == "int8");
  if (isOfBytes && llvm::count_if(tokens, [](const Token &token) { return token.raw == "int8"; }) == 2)
    type = "int8", otherType.clear();
  if (!otherType.empty()) {
    bool hasIndices = llvm::any_of(heavy.op->buffers, [](const Buffer &buffer) {
      return buffer.role == Buffer::Role::In && buffer.type == "int";
    });
    if (!hasIndices || (type != "int" && otherType != "int"))
      return refuse("it names two types, " + type + " and " + otherType);
    if (type == "int")
      type = otherType;
  }
  std::vector<std::string> types = heavy.op->types;
  std::string limiting = heavy.op->name;
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages) {
      // What is made of bytes has 32 bits.
      bool isAfter = stages == &result.after;
      auto offers = [&](const std::string &t) {
        return llvm::is_contained(stage.operation->types, isAfter && t == "int8" ? "int" : t);
      };
      llvm::erase_if(types, [&](const std::string &t) { return !offers(t); });
      if (!offers(type))
        limiting = stage.operation->name;
    }
  if (types.empty())
    return refuse("its parts have no type in common");
  if (!type.empty() && !llvm::is_contained(types, type))
    return refuse(limiting + " is not offered for " + type + " (but for " + llvm::join(types, ", ") + ")");
  bool areIntegers = type.empty() && showsIntegers && llvm::is_contained(types, "int");
  result.type = areIntegers ? "int" : type.empty() ? types.front() : type;
  // "prices above 99.5" are no integers.
  auto isFraction = [](const Token &token) { return token.isNumber() && token.values[0] != std::floor(token.values[0]); };
  bool hasReals = !heavy.op->reals.empty() || llvm::any_of(result.before, [](const Stage &s) { return !s.reals.empty(); });
  if (type.empty() && !areIntegers && result.type == "int" && hasReals && llvm::any_of(tokens, isFraction) &&
      llvm::is_contained(types, "float"))
    result.type = "float";
  return llvm::Error::success();
}

llvm::Expected<Understood> Reader::read() {
  if (tokens.empty())
    return makeError("an empty request; say what the kernel is to compute, e.g. \"row-wise softmax of a float matrix\"");
  for (const std::vector<std::string> &phrase : vocabulary.idle)
    for (size_t at = 0; at < tokens.size(); ++at)
      if (std::optional<Span> span = matchPhrase(tokens, at, phrase, 0, used))
        use(*span);
  if (llvm::Error error = findType())
    return std::move(error);
  for (const Token &token : tokens)
    if (vocabulary.isForeign(token.text))
      return isFinal = true, refuse("nothing is offered for '" + token.raw + "'");
  bool isElementwise = llvm::any_of(tokens, [](const Token &token) { return token.text == "elementwise"; });
  for (size_t at = 0; at + 1 < tokens.size(); ++at)
    isElementwise |= tokens[at].text == "each" && tokens[at + 1].text == "element";
  for (const std::vector<std::string> &phrase : vocabulary.foreignPhrases)
    for (size_t at = 0; at < tokens.size(); ++at)
      if (std::optional<Span> span = matchPhrase(tokens, at, phrase, 0, used);
          span && !(span->at.size() == 2 && tokens[at].raw == "each" && tokens[span->at[1]].raw == "other") &&
          llvm::none_of(llvm::ArrayRef(tokens).slice(at, span->at.back() - at),
                        [](const Token &t) { return t.isNumber() && !t.spelled; }) &&
          !(llvm::is_contained(phrase, "matrix") && isElementwise))
        return isFinal = true, refuse("nothing is offered for '" + llvm::join(phrase, " ") + "'");
  findModifiers();
  if (llvm::Error error = chooseOperations())
    return std::move(error);
  if (llvm::Error error = chooseType())
    return std::move(error);
  if (llvm::Error error = applyModifiers())
    return std::move(error);
  if (llvm::Error error = assignNumbers())
    return std::move(error);
  if (llvm::Error error = checkAsked())
    return std::move(error);
  if (llvm::Error error = checkWords())
    return std::move(error);
  return std::move(result);
}

llvm::Expected<Understood> optiml::gen::understand(StringRef request, const Library &library,
                                                   const Vocabulary &vocabulary) {
  if (request.size() > 2000)
    return makeError("a request of {0} characters; 2000 are the most", request.size());
  std::vector<Token> tokens = Reader::tokensOf(request, library, vocabulary);
  Reader reader(request, tokens, library, vocabulary);
  llvm::Expected<Understood> result = reader.read();
  if (std::string rows = groupsAsRows(request); !result && rows != request) {
    if (llvm::Expected<Understood> other = Reader(rows, Reader::tokensOf(rows, library, vocabulary), library, vocabulary).read()) {
      llvm::consumeError(result.takeError());
      return other;
    } else
      llvm::consumeError(other.takeError());
  }
  // "vector add 1M float" is no addition of a constant that nobody gave; "mse per column" is none of whole arrays.
  if (const Operation *lacking = result ? nullptr : reader.lacking()) {
    llvm::Expected<Understood> other = Reader(request, tokens, library, vocabulary, nullptr, false, lacking).read();
    if (other) {
      llvm::consumeError(result.takeError());
      return other;
    }
    llvm::consumeError(other.takeError());
  }
  if (std::optional<std::string> parts = result ? std::nullopt : reader.byParts()) {
    if (llvm::Expected<Understood> other = Reader(request, vocabulary.tokenize(*parts), library, vocabulary).read()) {
      llvm::consumeError(result.takeError());
      return other;
    } else
      llvm::consumeError(other.takeError());
  }
  const Operation *recalled = result ? nullptr : reader.recall();
  if (!recalled)
    return result;
  llvm::Expected<Understood> other = Reader(request, tokens, library, vocabulary, recalled, reader.recognized(recalled)).read();
  if (!other) {
    llvm::consumeError(other.takeError());
    return result;
  }
  llvm::consumeError(result.takeError());
  return other;
}

std::vector<const Operation *> optiml::gen::nearestOperations(StringRef request, const Library &library,
                                                              const Vocabulary &vocabulary, size_t count) {
  request = request.take_front(2000);
  return Reader(request, Reader::tokensOf(request, library, vocabulary), library, vocabulary).nearest(count);
}
