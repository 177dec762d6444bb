//===- ReadNumbers.cpp - sizes and constants of a request -----------------===//
#include "Reader.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

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

/// What stands between a number and what it counts: "100 equally wide bins", not "100 floats in bins".
static bool endsCount(const Token &token, size_t distance) {
  static const std::set<StringRef> ends = {",", "and", "of", "with", "from", "."},
                                   far = {".", "in", "to", "by", "for", "on", "from", "x", "(", ")", "="};
  return token.isNumber() || token.text == "each" || ends.count(token.raw) ||
         (distance > 1 && (token.isShape() || far.count(token.raw)));
}

/// "300 rows", "k = 16", "batch of 8", "scale by 2.5".
bool Reader::assignBeside(size_t at) {
  double value = tokens[at].values[0];
  // "multiply two vectors": how many there are of them
  static const std::set<StringRef> operands = {"vectors", "arrays", "matrices", "lists", "operands"};
  for (size_t next = at + 1; tokens[at].spelled && value <= 3 && next < std::min(at + 5, tokens.size()) &&
                             (tokens[next].values.empty() || tokens[next].isShape());
       ++next)
    if (operands.count(tokens[next].raw))
      return false;
  struct Candidate {
    std::string name;
    Span span;
    int rank = 0;
  };
  std::optional<Candidate> best;
  std::map<std::string, int> sides[2]; // ranks by name, behind the number and before it
  auto offer = [&](const std::string &name, const Span &span, int rank) {
    bool fits = llvm::none_of(heavy.op->sizes,
                              [&](const Size &size) { return size.name == name && value < double(size.least); });
    if (!fits || given[name])
      return;
    // A name on both sides counts for more: "window of 20 samples".
    bool isBefore = span.at.back() < at;
    auto [other, isNew] = sides[isBefore].insert({name, rank});
    other->second = std::max(other->second, rank);
    if (auto both = sides[!isBefore].find(name); both != sides[!isBefore].end())
      rank = std::max(rank, both->second) + 2;
    if (!best || rank > best->rank)
      best = Candidate{name, span, rank};
  };
  auto isPluralType = [&](size_t word) { // "64-bit integers"
    while (typeAt.count(word + 1))
      ++word;
    return typeAt.count(word) && tokens[word].raw.back() == 's';
  };
  static const std::vector<std::string> between = {"=",     "of",     "is",   "size", "equal",  "to",
                                                   "a",     "length", "be",   "at",   "width",  "number",
                                                   "count", "value",  "with", "has",  "having", "exactly"};
  std::vector<bool> none(tokens.size(), false);
  for (const Named &wanted : numbersWanted())
    for (const std::string &text : *wanted.words) {
      std::vector<std::string> phrase = vocabulary.words(text);
      // "gather 5000 elements from 100000": a phrase with the number in it
      if (auto number = llvm::find(phrase, "#"); number != phrase.end()) {
        size_t before = size_t(number - phrase.begin());
        for (size_t begin = at > before + 2 ? at - before - 2 : 0; begin <= at; ++begin)
          if (std::optional<Span> span = matchPhrase(tokens, begin, phrase, 1, none); span && span->at[before] == at)
            offer(wanted.name, Span{{begin}}, 15);
        continue;
      }
      // "10000 ints": that many elements.
      bool countsAll = wanted.name == "n" ? heavy.op->sizes[0].name == "n" : wanted.name == "cols" && text == "element";
      if (!wanted.target && countsAll && typeAt.count(at + 1))
        offer(wanted.name, Span{{at + 1}}, isPluralType(at + 1) ? 7 : 3);
      // After the number, perhaps with one word between: "1000 float values", "8 attention heads"; not "1000 16-d
      // features".
      static const std::set<std::string> before = {"and",  "to", "from", "between", "in", "by",
                                                   "with", "at", "of",   "than",    "for", "above", "over", "below",
                                                   "under", "exceed", "exceeding", "exceeds"};
      bool standsBefore = phrase.size() == 1 && (before.count(phrase[0]) || before.count(text));
      auto isDimension = [&](size_t between) {
        return StringRef(tokens[between].raw).ends_with("d") && llvm::isDigit(tokens[between].raw[0]);
      };
      // "16 filters of size 3x3" are 16 filters.
      standsBefore |= phrase.size() > 1 && (phrase.back() == vocabulary.canonical("size") || phrase.back() == "length");
      for (size_t next = at + 1; !standsBefore && next < std::min(at + 4, tokens.size()); ++next) {
        if (next > at + 1 && (isDimension(next - 1) || endsCount(tokens[next - 1], next - 1 - at)))
          break;
        bool isPlural = wanted.target && tokens[next].text == "element" && tokens[next].raw.back() == 's';
        // "512 double samples" are as near as "512 samples".
        size_t between = next - at - 1;
        for (size_t other = at + 1; other < next && !wanted.target; ++other)
          between -= typeAt.count(other);
        // "stride 2 pad 1": the name of the next number
        auto endsBefore = [&](const Named &other) {
          return at > 0 && llvm::any_of(*other.words, [&](const std::string &word) { return vocabulary.canonical(word) == tokens[at - 1].text; });
        };
        bool isNext = next + 1 < tokens.size() && tokens[next + 1].isNumber() && !tokens[next + 1].spelled && next == at + 1 &&
                      llvm::any_of(numbersWanted(), endsBefore);
        if (std::optional<Span> span = matchPhrase(tokens, next, phrase, 0, none); span && !isPlural && !isNext)
          offer(wanted.name, *span, (between == 0 ? 6 : between == 1 ? 3 : 1) + int(phrase.size()));
      }
      // Before it: "k = 16", "window size of 5".
      for (size_t back = 1; back <= 4 && back <= at; ++back) {
        size_t begin = at - back;
        if (std::optional<Span> span = matchPhrase(tokens, begin, phrase, 0, none)) {
          bool onlyBetween = true, equals = false;
          for (size_t i = span->at.back() + 1; i < at; ++i) {
            onlyBetween &= llvm::is_contained(between, tokens[i].raw);
            equals |= tokens[i].raw == "=";
          }
          // "vocabulary size 30522" is the vocabulary's, not a size of its own.
          static const std::set<StringRef> extents = {"size", "length", "count", "dim", "dimension"};
          bool isWhole = span->at.back() + 1 < at && extents.count(tokens[span->at.back() + 1].raw);
          if (span->at.back() < at && onlyBetween)
            offer(wanted.name, *span,
                  (equals          ? 10
                   : text == "top" ? 8
                                   : 5) -
                      int(at - span->at.back()) + int(phrase.size()) + 2 * isWhole);
        }
      }
    }
  if (std::optional<size_t> word = countsRows(at);
      word && llvm::any_of(heavy.op->sizes, [](const Size &size) { return size.name == "rows"; }))
    offer("rows", Span{{*word}}, 20);
  // "two erosions", "five red-black sweeps": so many times what the operation does
  if (!heavy.span.at.empty() && at + 1 == heavy.first() &&
      llvm::any_of(heavy.op->sizes, [](const Size &size) { return size.name == "steps"; }))
    offer("steps", Span{{at}}, 4);
  // "add two vectors" counts the vectors.
  bool inOne = tokens[at].spelled && value == 1 && at > 0 &&
               (tokens[at - 1].raw == "in" || tokens[at - 1].raw == "as" || tokens[at - 1].raw == "to" || tokens[at - 1].raw == "length");
  // "ten 20x20 matrix products"
  bool isCount = value > 1 && !heavy.span.at.empty() && at <= heavy.first() && heavy.first() - at < 6 &&
                 !given["batch"] && result.sizes.count("batch") && heavy.op->group == "Linear algebra";
  for (size_t next = at + 1; isCount && next < heavy.first(); ++next)
    isCount = tokens[next].isShape() || typeAt.count(next) || tokens[next].raw == "independent" ||
              tokens[next].raw == "separate" || tokens[next].raw == "small" || tokens[next].raw == "square";
  if (isCount)
    offer("batch", Span{{at}}, 9);
  // "twelve floats" are so many, "two vectors" are the operands.
  bool counts = value > 4 && at + 1 < tokens.size() && (tokens[at + 1].raw.back() == 's' || isPluralType(at + 1)) &&
                (typeAt.count(at + 1) || tokens[at + 1].text == "element" || (best && best->span.at.front() == at + 1));
  if (!best || inOne || (tokens[at].spelled && best->name == "n" && !counts))
    return false;
  if (!setNumber(best->name, value, at))
    return false;
  use(best->span);
  assignEquals(at, value);
  return true;
}

/// "M = N = K = 1000"
void Reader::assignEquals(size_t at, double value) {
  for (; at > 3 && tokens[at - 1].raw == "=" && tokens[at - 3].raw == "="; at -= 2)
    for (const Named &wanted : numbersWanted())
      if (!given[wanted.name] && llvm::is_contained(*wanted.words, tokens[at - 4].raw))
        setNumber(wanted.name, value, at - 4);
}

/// "batch 16, vocabulary 32000": what is left over are the dimensions that nothing was said about, in their order. A
/// number that the operation's own description has ("scaled to [0, 1]") says nothing new.
void Reader::assignMissing() {
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (!tokens[at].isNumber() || used[at] || tokens[at].spelled)
      continue;
    bool isFlag = tokens[at].values[0] == 1 && at > 1 && tokens[at - 1].raw == "is" &&
                  llvm::any_of(llvm::ArrayRef(tokens).slice(at > 5 ? at - 5 : 0, at > 5 ? 5 : at),
                               [](const Token &token) { return token.text == "flag"; }); // "where the flag is 1"
    bool inTitle = llvm::is_contained(vocabulary.words(heavy.op->title), tokens[at].raw) ||
                   (tokens[at].values[0] < 10 && llvm::is_contained(vocabulary.words(heavy.op->about), tokens[at].raw));
    for (const auto *stages : {&result.before, &result.after})
      for (const Stage &stage : *stages)
        inTitle |= stage.operation->reals.empty() && StringRef(stage.operation->title).contains(tokens[at].raw);
    // "a vector of 10 doubles to each row of a 32x10 matrix"
    bool countsElements = at + 1 < tokens.size() && (typeAt.count(at + 1) || tokens[at + 1].text == "element") &&
                          tokens[at + 1].raw.back() == 's' &&
                          llvm::any_of(tokens, [](const Token &token) { return token.isShape(); });
    bool isGiven = llvm::any_of(numbersWanted(), [&](const Named &wanted) {
      return wanted.target && given[wanted.name] && *wanted.target == tokens[at].values[0];
    }); // "above 1 becomes 1"
    if (isFlag || inTitle || isGiven)
      used[at] = true;
    else if (llvm::any_of(result.sizes, [&](const auto &size) {
               auto isNamed = [&](const Named &wanted) {
                 return wanted.name == size.first && at > 0 && llvm::is_contained(*wanted.words, tokens[at - 1].raw);
               };
               return given[size.first] && double(size.second) == tokens[at].values[0] &&
                      (size.second >= 16 || countsElements || llvm::any_of(numbersWanted(), isNamed));
             }))
      used[at] = true; // said again
    else
      open.push_back(at);
  }
  // "C = 64" of what has no C is nothing that may be guessed.
  auto isNamedElse = [&](size_t at) {
    return open.size() > 1 && at > 1 && tokens[at - 1].raw == "=" && tokens[at - 2].raw.size() == 1;
  };
  if (open.empty() || llvm::any_of(open, [&](size_t at) {
        return tokens[at].values[0] < 2 || tokens[at].values[0] != std::floor(tokens[at].values[0]) || isNamedElse(at);
      }))
    return;
  for (const ShapeRule &rule : heavy.op->shapes) {
    if (!rule.words.empty() || rule.shapes.size() != 1 || !isChosen(rule))
      continue;
    std::vector<std::string> missing;
    for (const std::string &name : rule.shapes[0])
      if (!given[name])
        missing.push_back(name);
    bool isPlain = llvm::none_of(rule.shapes[0], [](const std::string &name) { return StringRef(name).contains('='); });
    if (!isPlain || rule.shapes[0].size() < 2 || missing.size() != open.size())
      continue;
    for (size_t i = 0; i < open.size(); ++i)
      setNumber(missing[i], tokens[open[i]].values[0], open[i]);
    return;
  }
}

/// "filled with ones", "the first zero"
void Reader::assignWords() {
  for (size_t at = 0; at < tokens.size(); ++at) {
    bool isZero = tokens[at].raw == "zero" || tokens[at].raw == "zeros" || tokens[at].raw == "zeroes",
         isOne = tokens[at].raw == "ones";
    bool isName = llvm::is_contained(heavy.span.at, at); // "the first zero"
    if ((used[at] && !isName) || (!isZero && !isOne))
      continue;
    for (const Named &wanted : numbersWanted())
      if (wanted.target && !given[wanted.name] && llvm::is_contained(*wanted.words, "value")) {
        setNumber(wanted.name, isOne, at);
        break;
      }
  }
}

/// "topk(x, 5)", "max_pool2d(x, 2)": a small number alone is what the operation is told beside its arrays.
void Reader::assignPositional() {
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at)
    if (tokens[at].isNumber() && !used[at] && !tokens[at].spelled)
      open.push_back(at);
  bool isCall = open.size() == 1 && open[0] > 1 && tokens[open[0] - 1].raw == "," && open[0] + 1 < tokens.size() &&
                (tokens[open[0] + 1].raw == ")" || tokens[open[0] + 1].raw == ",");
  if (isCall && std::fabs(tokens[open[0]].values[0]) <= 1 && tokens[open[0]].values[0] <= 0 &&
      !choiceOffers(*heavy.op, "row")) {
    used[open[0]] = true; // the only axis of a vector
    return;
  }
  for (const Size &size : heavy.op->sizes)
    if (isCall && size.keep && !given[size.name] && tokens[open[0]].values[0] >= double(size.least) &&
        tokens[open[0]].values[0] <= 64) {
      setNumber(size.name, tokens[open[0]].values[0], open[0]);
      return;
    }
}

/// "512 rows and 2048 columns" of an operation that knows no rows are the shape of its elements.
void Reader::joinRowsAndColumns() {
  // "A has 100 rows and 200 columns, B has 200 rows and 300 columns"
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t at = 0; at + 1 < tokens.size(); ++at)
    for (size_t next : {at + 2, at + 3})
      if (next + 1 < tokens.size() && tokens[at].isNumber() && tokens[next].isNumber() && tokens[at + 1].text == "row" &&
          tokens[next + 1].text == "column" && (next == at + 2 || tokens[at + 2].raw == "and" || tokens[at + 2].raw == ","))
        pairs.push_back({at, next});
  bool takesTwo = llvm::any_of(heavy.op->shapes, [](const ShapeRule &rule) { return rule.words.empty() && rule.shapes.size() == 2; });
  if (pairs.size() == 2 && takesTwo) {
    for (auto [rows, columns] : pairs) {
      tokens[rows].values.push_back(tokens[columns].values[0]);
      tokens[rows].raw += "x" + tokens[columns].raw;
      used[rows + 1] = used[columns] = used[columns + 1] = true;
    }
    return;
  }
  if (llvm::any_of(heavy.op->sizes, [](const Size &size) { return llvm::is_contained(size.words, "row"); }))
    return;
  size_t found[2] = {0, 0};
  for (size_t at = 0; at + 1 < tokens.size(); ++at)
    for (size_t which : {0, 1})
      if (tokens[at].isNumber() && !used[at] && !found[which] && tokens[at + 1].text == (which ? "column" : "row"))
        found[which] = at + 1;
  if (!found[0] || !found[1])
    return;
  Token &rows = tokens[found[0] - 1], &columns = tokens[found[1] - 1];
  rows.values.push_back(columns.values[0]);
  rows.raw += "x" + columns.raw;
  used[found[0]] = used[found[1]] = used[found[1] - 1] = true;
}

/// "a batch of 16 images of 3x32x32", "8 heads, 128 tokens": how many elements there are for what takes them one by
/// one.
void Reader::joinExtents() {
  static const std::set<StringRef> counted = {"batch",    "image",  "channel", "token",   "feature", "head",
                                              "frame",    "map",    "tensor",  "sample",  "volume",  "hidden",
                                              "sequence", "height", "width",   "example", "length"},
                                   links = {"of", "=", "size", "is", "dimension", "dim"},
                                   ofBatch = {"vector", "array", "matrix", "row", "signal", "element"};
  if (!heavy.op->says.empty() || heavy.op->sizes.empty() || heavy.op->sizes[0].name != "n")
    return;
  std::vector<size_t> extents;
  bool isBatch = false;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (used[at] || tokens[at].spelled || tokens[at].values.empty() || tokens[at].text == "interval")
      continue;
    if (tokens[at].isShape()) {
      extents.push_back(at);
      continue;
    }
    size_t before = at, next = at + 1;
    while (before > 1 && links.count(tokens[before - 1].raw))
      --before;
    while (next < tokens.size() && typeAt.count(next))
      ++next;
    const std::string &name = before > 0 ? tokens[before - 1].text : tokens[at].text;
    isBatch |= name == "batch";
    bool counts =
        next < tokens.size() && (counted.count(tokens[next].text) || (isBatch && ofBatch.count(tokens[next].text)));
    if ((counts || counted.count(name)) && tokens[at].values[0] >= 1 &&
        tokens[at].values[0] == std::floor(tokens[at].values[0]))
      extents.push_back(at);
  }
  if (extents.size() < 2 || llvm::count_if(extents, [&](size_t at) { return tokens[at].isShape(); }) > 1)
    return;
  Token &whole = tokens[extents[0]];
  for (size_t at : llvm::drop_begin(extents)) {
    whole.values.insert(whole.values.end(), tokens[at].values.begin(), tokens[at].values.end());
    whole.raw += "x" + tokens[at].raw;
    used[at] = true;
  }
}

/// "have a score above 1000": the constant that elements are compared with.
void Reader::readCompared() {
  static const std::set<StringRef> compare = {"above", "below", "exceed", "exceeds", "exceeding", "than", "under"};
  std::vector<Named> open;
  for (const Named &wanted : numbersWanted())
    if (wanted.target)
      open.push_back(wanted);
  std::vector<size_t> found;
  for (size_t at = 1; at < tokens.size(); ++at)
    if (tokens[at].isNumber() && !tokens[at].spelled && !used[at] && compare.count(tokens[at - 1].raw))
      found.push_back(at);
  if (open.size() == 1 && found.size() == 1)
    setNumber(open[0].name, tokens[found[0]].values[0], found[0]);
}

llvm::Error Reader::assignNumbers() {
  for (const Size &size : heavy.op->sizes)
    result.sizes[size.name] = size.value;
  for (const Real &real : heavy.op->reals)
    result.reals[real.name] = real.value;
  joinRowsAndColumns();
  joinExtents();
  readLeadingFilter();
  // "Huber loss with delta 1", as its description has it
  std::vector<std::string> about = vocabulary.words(heavy.op->about);
  for (size_t at = 1; at < tokens.size(); ++at)
    for (size_t word = 1; word < about.size() && tokens[at].isNumber(); ++word)
      if (about[word] == tokens[at].raw &&
          (about[word - 1] == tokens[at - 1].text ||
           (at > 1 && tokens[at - 1].raw == "=" && about[word - 1] == tokens[at - 2].text)))
        used[at] = true;
  readCompared();
  readAsked();
  for (bool spelled : {false, true}) // "the two closest among 1000 points"
    for (size_t at = 0; at < tokens.size(); ++at)
      if (tokens[at].isNumber() && !used[at] && tokens[at].spelled == spelled) {
        // "500 and 700 points": the name belongs to the first of them.
        bool isSecond = !spelled && at > 1 && tokens[at - 1].raw == "and" && tokens[at - 2].isNumber() &&
                        !tokens[at - 2].spelled && !used[at - 2];
        if (isSecond)
          std::swap(tokens[at].values, tokens[at - 2].values);
        if (!assignBeside(at) && isSecond)
          std::swap(tokens[at].values, tokens[at - 2].values);
      }
  if (llvm::Error error = assignShapes())
    return error;
  for (size_t at = 0; at < tokens.size(); ++at) // "of points in 3D"
    if (unsigned dim = 0; !used[at] && !given["dim"] && StringRef(tokens[at].raw).ends_with("d") &&
                          !StringRef(tokens[at].raw).drop_back().getAsInteger(10, dim))
      if (!setNumber("dim", dim, at) && dim > 3) { // "two 768-d vectors"
        if (given["n"] || !setNumber("n", dim, at))
          return refuse("what is '" + tokens[at].raw + "' for " + heavy.op->name + "?");
      }
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
  assignPositional();
  assignMissing();
  assignWords();
  // "of 1M floats": the number without a word of its own is the size, where there is one such size; or the constant.
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (!tokens[at].isNumber() || used[at] || tokens[at].spelled)
      continue;
    double value = tokens[at].values[0];
    std::vector<Named> wanted = numbersWanted();
    bool done = false;
    bool integral = value == std::floor(value) && value >= 1;
    StringRef counts = at + 1 < tokens.size() ? StringRef(tokens[at + 1].text) : "";
    if (counts == "row" || counts == "column")
      return refuse("what are " + tokens[at].raw + " " + tokens[at + 1].raw + " of " + heavy.op->name + "?");
    for (const ShapeRule &rule : heavy.op->shapes) {
      std::map<std::string, int64_t> values;
      // "one million pixels" of a square picture
      bool isTotal = rule.shapes.size() == 1 && rule.shapes[0].size() == 1 &&
                     StringRef(rule.shapes[0][0]).count('=') == 1 &&
                     (counts == "pixel" || counts == "cell" || value > 100000);
      if (double side = std::round(std::sqrt(value)); isTotal && side * side == value)
        tokens[at].values[0] = side;
      else if (isTotal)
        continue;
      if (!done && integral &&
          (value >= 16 || counts == "element" || (at + 1 < tokens.size() && vocabulary.isData(tokens[at + 1].raw))) &&
          rule.words.empty() && rule.when.empty() && readShapes(rule, tokens, {at}, values) &&
          llvm::none_of(values, [&](auto &v) { return given[v.first]; })) {
        for (const auto &[name, v] : values)
          done |= setNumber(name, double(v), at);
      }
    }
    for (const Named &named : wanted)
      if (!done && named.target && !given[named.name] && (!integral || value < 1024))
        done = setNumber(named.name, value, at);
    // "100 matrix products of 16x16"
    auto isOpen = [&](const Size &size) { return !given[size.name] && size.sameAs.empty(); };
    if (!done && integral && value >= 2 && result.sizes.count("batch") && !given["batch"] &&
        llvm::count_if(heavy.op->sizes, isOpen) == 1)
      done = setNumber("batch", value, at);
    if (!done && integral && value >= 32 && heavy.op->sizes.size() && !given[heavy.op->sizes[0].name] && heavy.op->sizes[0].name == "n")
      done = setNumber("n", value, at);
    // "a moving average of 3"
    if (!done && integral && value >= 2 && value <= 64 && result.sizes.count("window") && !given["window"])
      done = setNumber("window", value, at);
    // "arrays of 1000 and 500 elements": the size that is the same unless it is said
    for (const Size &size : heavy.op->sizes)
      if (!done && integral && !size.sameAs.empty() && given[size.sameAs] && !given[size.name] && at + 1 < tokens.size() &&
          tokens[at + 1].raw == "and")
        done = setNumber(size.name, value, at);
    // "an array of 4000 elements with one of 6000 elements"
    bool isFurther = at > 0 && (tokens[at - 1].raw == "of" || tokens[at - 1].raw == "with" || tokens[at - 1].raw == "and" ||
                                tokens[at - 1].raw == "has" || tokens[at - 1].raw == "another" || tokens[at - 1].raw == "a");
    for (const Size &size : heavy.op->sizes)
      if (!done && integral && isFurther && !size.keep && !size.sameAs.empty() && given[size.sameAs] && !given[size.name] &&
          llvm::count_if(heavy.op->sizes, [](const Size &other) { return !other.sameAs.empty(); }) == 1)
        done = setNumber(size.name, value, at);
    if (!done)
      return refuse("what is " + tokens[at].raw + " for " + heavy.op->name + "?");
  }
  return checkSizes();
}
