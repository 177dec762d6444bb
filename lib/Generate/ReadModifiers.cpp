//===- ReadModifiers.cpp - types, layouts, axes, orders of a request ------===//
#include "Reader.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

/// The longest phrase at each place wins.
llvm::Error Reader::findType() {
  std::string ofKeys; // counts where there is no other
  for (size_t at = 0; at < tokens.size(); ++at) {
    std::string best;
    Span span;
    for (const auto &[name, phrases] : vocabulary.types)
      for (const std::vector<std::string> &phrase : phrases)
        if (std::optional<Span> found = matchPhrase(tokens, at, phrase, 0, used))
          // "the sign of 64 ints" are not signed
          if (found->at.size() > span.at.size() && found->at.back() - at + 1 == found->at.size())
            best = name, span = *found;
    if (best.empty())
      continue;
    size_t next = span.at.back() + 1;
    StringRef after = next < tokens.size() ? StringRef(tokens[next].raw) : "";
    // "one long vector", "half of them" are no types; nor is what is only accumulated in.
    static const std::set<StringRef> ofLong = {"vector", "array",   "list",    "sequence", "signal", "row", "rows",
                                               "column", "columns", "vectors", "arrays",   "series", "time"};
    static const std::set<StringRef> ofHalf = {"of",   "the",   "a",       "an",    "as",   "way",   "life", "open",
                                               "edge", "edges", "million", "width", "size", "plane", "space"};
    const std::string &word = tokens[at].raw;
    bool other = at > 0 && (tokens[at - 1].raw == "first" || tokens[at - 1].raw == "second" ||
                            tokens[at - 1].raw == "other" || tokens[at - 1].raw == "one");
    static const std::set<StringRef> extents = {"shape", "size", "dimension", "dimensions", "length"};
    bool isOfShape = after == "of" && next + 1 < tokens.size() && extents.count(tokens[next + 1].raw);
    static const std::set<StringRef> roundsTo = {"nearest", "next", "closest"};
    bool isRounded = at > 1 && (tokens[at - 1].raw == "to" || tokens[at - 1].raw == "into") &&
                     llvm::any_of(llvm::ArrayRef(tokens).take_front(at), [](const Token &t) { return t.text == "round"; });
    if (at > 0 && (roundsTo.count(tokens[at - 1].raw) || (isRounded && best == "int"))) {
      use(span);
      continue;
    }
    if (span.at.size() == 1 &&
        ((word == "long" && (ofLong.count(after) || (next < tokens.size() && !tokens[next].values.empty()))) ||
         (word == "half" && (other || (ofHalf.count(after) && !isOfShape)))))
      continue;
    bool accumulates = after.starts_with("accum") || (at > 1 && StringRef(tokens[at - 2].raw).starts_with("accum"));
    // "int8 with int32 accumulation", "int8 inputs, int32 output"
    static const std::set<StringRef> results = {"output", "outputs", "result", "results"};
    bool isResult = type == "int8" && best == "int" && (accumulates || results.count(after));
    if (isResult || (accumulates && best != "int")) {
      use(span);
      if (after.starts_with("accum") || results.count(after))
        used[next] = true;
      continue;
    }
    bool ofIndices = next < tokens.size() &&
                     (tokens[next].text == "index" || tokens[next].text == "label" || tokens[next].text == "id" || tokens[next].raw == "targets" ||
                      tokens[next].text == "key" || tokens[next].raw == "payload" || tokens[next].raw == "payloads");
    use(span);
    typeAt.insert(span.at.begin(), span.at.end());
    // "each byte value of 10M ints"
    bool ofValues = best == "unsigned char" && next < tokens.size() && tokens[next].text == "element";
    if (ofValues)
      continue;
    if (ofIndices) {
      if (tokens[next].text == "key")
        ofKeys = best;
      continue;
    }
    if ((type == "int" && best == "unsigned") || (type == "unsigned" && best == "int")) {
      type = "unsigned"; // "random integers, unsigned"
      continue;
    }
    if (!type.empty() && type != best && !otherType.empty() && otherType != best)
      return refuse("it names three types, " + type + ", " + otherType + " and " + best);
    (type.empty() || type == best ? type : otherType) = best;
  }
  if (type.empty())
    type = ofKeys;
  for (const Token &token : tokens)
    if (auto named = vocabulary.implied.find(token.raw); named != vocabulary.implied.end() && type.empty())
      type = named->second; // "saxpy in double" is double
  return llvm::Error::success();
}

/// "A times transposed B" is not "A transposed".
bool Reader::joinsOperands(const Span &span) const {
  // "each column of a row-major matrix" is no "each … row".
  size_t last = span.at.back();
  if (last + 1 < tokens.size() && tokens[last + 1].text == "major")
    return true;
  for (size_t at = span.at.front(); at < span.at.back(); ++at) {
    const Token &token = tokens[at];
    if (!llvm::is_contained(span.at, at) && (token.text == "multiply" || token.raw == "by" || token.raw == "and" || token.raw == "with"))
      return true;
  }
  return false;
}

/// "for each of 2000 samples", "64 independent sums": so many of what the operation does; the word that tells.
std::optional<size_t> Reader::countsRows(size_t at) const {
  StringRef next = at + 1 < tokens.size() ? StringRef(tokens[at + 1].raw) : "";
  bool isOfElements = at + 1 < tokens.size() && typeAt.count(at + 1); // "square each of 1M doubles"
  if (!tokens[at].isNumber() || tokens[at].spelled || (isOfElements && next != "independent") || tokens[at + 1 < tokens.size() ? at + 1 : at].text == "column")
    return std::nullopt;
  size_t before = at - (at > 0 && tokens[at - 1].raw == "the");
  if (before > 1 && tokens[before - 1].raw == "of" && tokens[before - 2].raw == "each")
    return before - 2;
  if (next == "independent" || next == "separate")
    return at + 1;
  return std::nullopt;
}

void Reader::findModifiers() {
  for (size_t at = 0; at < tokens.size(); ++at) {
    // All that match here: which one is meant depends on what the operation offers.
    for (const auto &[name, phrases] : vocabulary.modifiers) {
      std::optional<Span> best;
      for (const std::vector<std::string> &phrase : phrases)
        if (std::optional<Span> found = matchPhrase(tokens, at, phrase, phrase.size() > 1 ? 1 : 0, used))
          if (!(phrase.size() == 1 && compares(at)) && !joinsOperands(*found) &&
              (!best || found->at.size() > best->at.size()))
            best = found;
      // Row-major is what all are, and what has weights need not be weighted.
      bool isSoft = best && (name == "rowmajor" || name == "leftward" || name == "rightward" || (name == "manhattan" && tokens[best->at.back()].raw == "l1") || name == "put" || name == "call" ||
                             (name == "gradient" && tokens[best->at[0]].raw == "gradients") ||
                             (name == "weighted" && tokens[best->at[0]].raw != "weighted"));
      if (best)
        modifiers.push_back({name, *best, isSoft});
    }
    // "row sums", "the maximum of the columns"; not "300 rows" nor "row vector".
    const Token &token = tokens[at];
    bool counted = at && !tokens[at - 1].values.empty();
    StringRef next = at + 1 < tokens.size() ? StringRef(tokens[at + 1].text) : "";
    static const std::set<StringRef> rowsOfData = {"sample", "example", "observation", "query"};
    if (at > 0 && tokens[at - 1].text == "each" && rowsOfData.count(token.raw))
      modifiers.push_back({"row", Span{{at}}, true});
    if (std::optional<size_t> word = countsRows(at))
      modifiers.push_back({"row", Span{{*word}}, true});
    if ((token.text == "row" || token.text == "column") && !counted && next != "vector" && next != "major" &&
        next != "=" && next != "index" && next != "count" && (next.empty() || next[0] != '#'))
      modifiers.push_back({token.text, Span{{at}}, true});
  }
  dropInnerModifiers();
}

/// "squared Euclidean distance" is not the Euclidean one as well.
void Reader::dropInnerModifiers() {
  std::vector<Modifier> all = modifiers;
  llvm::erase_if(modifiers, [&](const Modifier &inner) {
    return llvm::any_of(all, [&](const Modifier &outer) {
      return !outer.soft && outer.name != inner.name && outer.span.at.size() > inner.span.at.size() &&
             inner.span.at.front() >= outer.span.at.front() && inner.span.at.back() <= outer.span.at.back() &&
             llvm::any_of(library.operations(), [&](const Operation &op) {
               return llvm::any_of(op.choices, [&](const Choice &choice) {
                 return llvm::is_contained(choice.values, inner.name) && llvm::is_contained(choice.values, outer.name);
               });
             });
    });
  });
}

bool optiml::gen::choiceOffers(const Operation &op, const std::string &modifier) {
  if (modifier == "batched" && llvm::any_of(op.sizes, [](const Size &size) { return llvm::is_contained(size.words, "batch"); }))
    return true;
  return llvm::is_contained(op.always, modifier) ||
         llvm::any_of(op.choices, [&](const Choice &c) { return llvm::is_contained(c.values, modifier); });
}

/// "dim=0", "axis 1": vectors have axes of this kind, too.
bool Reader::isNamedByNumber(const Modifier &axis) const {
  auto says = [&](StringRef word) { return llvm::any_of(axis.span.at, [&](size_t at) { return tokens[at].raw == word; }); };
  return (says("dim") || says("axis")) && !says("1");
}

llvm::Error Reader::applyModifiers() {
  for (const Choice &choice : heavy.op->choices)
    result.choices[choice.name] = choice.values.front();
  std::map<std::string, std::string> chosen;
  std::map<std::string, bool> ofRange; // chosen by what is reduced, which the result's axis overrules
  auto apply = [&](const Modifier &modifier) -> llvm::Error {
    for (const Choice &choice : heavy.op->choices)
      if (llvm::is_contained(choice.values, modifier.name)) {
        auto [it, isNew] = chosen.insert({choice.name, modifier.name});
        // "over its rows to one sum per column"
        static const std::set<StringRef> ranges = {"over", "across", "along"};
        bool isRange = ranges.count(tokens[modifier.span.at[0]].raw), wasRange = ofRange[choice.name];
        ofRange[choice.name] = isRange && (isNew || wasRange);
        if (!isNew && isRange && !wasRange) {
          use(modifier.span);
          return llvm::Error::success();
        }
        if (!isNew && wasRange && !isRange)
          it->second = modifier.name;
        if (!isNew && it->second != modifier.name)
          return refuse("it asks for both " + it->second + " and " + modifier.name);
        result.choices[choice.name] = modifier.name;
      }
    use(modifier.span);
    return llvm::Error::success();
  };
  // A modifier may share a word with the name of the operation: "sort … in descending order".
  auto free = [&, before = used](const Modifier &modifier) { // "both transposed" is two of them
    return overlaps(modifier.span, heavy.span) ||
           llvm::any_of(modifier.span.at, [&](size_t at) { return !before[at]; });
  };
  // "12 nonzeros per row" of an operation that knows no axes says nothing about one.
  bool hasAxis = choiceOffers(*heavy.op, "row") || choiceOffers(*heavy.op, "column");
  // "cumsum(x, dim=0)" of a vector.
  bool hasMatrix = llvm::any_of(
      tokens, [](const Token &token) { return token.isShape() || token.text == "matrix" || token.text == "2d"; });
  auto isOfVector = [&](const Modifier &modifier) { return !hasMatrix && isNamedByNumber(modifier); };
  auto isAxis = [](const Modifier &modifier) { return modifier.name == "row" || modifier.name == "column"; };
  // What is certain comes before what is one only where nothing else is said ("row sums").
  llvm::stable_sort(modifiers, [](const Modifier &a, const Modifier &b) { return a.soft < b.soft; });
  bool isVector = llvm::any_of(
      tokens, [](const Token &token) { return token.text == "vector" || token.text == "1d" || token.text == "array"; });
  if (isVector && choiceOffers(*heavy.op, "all"))
    llvm::erase_if(modifiers, [&](const Modifier &modifier) {
      bool drops = isAxis(modifier) && isOfVector(modifier);
      if (drops)
        use(modifier.span);
      return drops;
    });
  for (const Modifier &modifier : modifiers)
    if (choiceOffers(*heavy.op, modifier.name) && free(modifier) && (!modifier.soft || chosen.empty()))
      if (llvm::Error error = apply(modifier))
        return error;
  bool isOfSequence = llvm::all_of(heavy.op->shapes, [](const ShapeRule &rule) { return rule.shapes[0].size() == 1; });
  for (const Modifier &modifier : modifiers) {
    // "log-sum-exp with weights"
    size_t before = modifier.span.at[0] ? modifier.span.at[0] - 1 : 0;
    if (modifier.name == "weighted" && modifier.soft && heavy.op->group == "Reductions" && tokens[before].raw == "with" &&
        !choiceOffers(*heavy.op, "weighted"))
      return refuse(heavy.op->name + " is not offered with weights");
    if (llvm::all_of(modifier.span.at, [&](size_t at) { return isKnownFor(tokens[at].text); }))
      continue; // part of how it is usually asked for
    if (modifier.soft || choiceOffers(*heavy.op, modifier.name) || isLabel(modifier.span.at.back()))
      continue;
    if (modifier.name == "batched" && heavy.op->says.empty()) { // one after the other
      use(modifier.span);
      continue;
    }
    if (hasAxis || !isAxis(modifier)) {
      if (llvm::none_of(modifier.span.at, [&](size_t at) { return used[at]; }))
        return refuse((result.before.empty() || !heavy.op->says.empty() ? heavy.op->name : result.before[0].operation->name) +
                      " is not offered with '" + modifier.name + "'");
    } else if (isOfVector(modifier)) {
      use(modifier.span);
    } else if (modifier.span.at.size() > 1 && (isOfSequence || heavy.op->group == "Histograms") &&
               !index.mentions(heavy.op, modifier.name) && free(modifier)) {
      byAxis = true, lackingOne = heavy.op; // "the mean squared difference of each column": by its parts
      return refuse(heavy.op->name + " is not offered by " + modifier.name);
    }
  }
  for (const auto &[name, phrases] : vocabulary.hints)
    for (const std::vector<std::string> &phrase : phrases)
      for (size_t at = 0; at < tokens.size(); ++at)
        if (std::optional<Span> span = matchPhrase(tokens, at, phrase, 0, used)) {
          use(*span);
          result.notes.push_back("'" + name + "' is a wish about how to compute it, which is left to the search (--optimize)");
        }
  return llvm::Error::success();
}
