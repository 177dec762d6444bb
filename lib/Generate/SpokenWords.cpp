//===- SpokenWords.cpp - a request read word by word -----------------------===//
#include "SpokenWords.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

SpokenWords::SpokenWords(StringRef text, const Vocabulary &vocabulary) {
  static const std::map<StringRef, double> numerals = {{"zero", 0}, {"one", 1},  {"two", 2},  {"three", 3},
                                                       {"four", 4}, {"five", 5}, {"ten", 10}, {"half", 0.5}};
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ' || text[i] == '\n') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    bool isNumber = llvm::isDigit(text[i]) ||
                    (text[i] == '-' && end < text.size() && llvm::isDigit(text[end]) && (!i || text[i - 1] == ' '));
    if (llvm::isAlpha(text[i]))
      while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '_'))
        ++end;
    else if (isNumber)
      while (end < text.size() &&
             (llvm::isAlnum(text[end]) || text[end] == '^' ||
              ((text[end] == '.' || text[end] == ',') && end + 1 < text.size() && llvm::isDigit(text[end + 1]))))
        ++end;
    Word word;
    word.raw = text.slice(i, end).lower();
    word.begin = i, word.end = end;
    word.text = isNumber ? word.raw : vocabulary.canonical(word.raw);
    word.tells = vocabulary.isTelling(word.text) || vocabulary.isTelling(word.raw) || vocabulary.isForeign(word.text);
    double value = 0;
    if (isNumber && !StringRef(word.raw).getAsDouble(value))
      word.number = value;
    else if (auto numeral = numerals.find(word.raw); numeral != numerals.end())
      word.number = numeral->second;
    words.push_back(std::move(word));
    i = end;
  }
}

const std::string &SpokenWords::raw(size_t ahead) const {
  static const std::string none;
  return at + ahead < words.size() ? words[at + ahead].raw : none;
}

const std::string &SpokenWords::text(size_t ahead) const {
  static const std::string none;
  return at + ahead < words.size() ? words[at + ahead].text : none;
}

bool SpokenWords::take(std::initializer_list<StringRef> phrase) {
  size_t next = at;
  for (StringRef word : phrase)
    if (next == words.size() || (words[next].raw != word && words[next].text != word))
      return false;
    else
      ++next;
  at = next;
  return true;
}

bool SpokenWords::takeAny(const Set &set) {
  return at < words.size() && (set.count(raw()) || set.count(text())) && (++at, true);
}

void SpokenWords::lead() {
  static const Set polite = {"please", "i",  "we",  "want",  "need", "to",      "a",  "kernel", "that", "which", "for",
                             "give",   "me", "you", "would", "like", "program", "us", "write",  "cuda", "gpu"},
                   verbs = {"compute", "comput", "calculate", "calculat", "determine",
                            "return",  "find",   "evaluate",  "get",      "obtain"};
  size_t before = at;
  while (takeAny(polite)) {
  }
  bool isVerb = takeAny(verbs);
  if (!isVerb && at > before && at < words.size() && words[at - 1].raw == "for") // "for each row"
    --at;
  if (!isVerb && at == before + 1 && words[before].raw == "a")
    at = before;
}

bool SpokenWords::tail() {
  static const Set leads = {"of", "in", "for", "on", "over", "from", "with", "within", "(", "to"};
  return leads.count(raw()) && (pair() || readTail(at + 1));
}

bool SpokenWords::bothInputs() {
  size_t before = at, count = kept.size();
  --at; // the word before is no part of it
  if (pair())
    return true;
  at = before;
  auto isPlural = [&](size_t place) { // "prices with quantities"
    static const Set numbers = {"floats",  "doubles", "ints",    "integers", "values",  "elements", "entries",
                                "numbers", "rows",    "columns", "arrays",   "vectors", "matrices"};
    return place < words.size() && words[place].raw.size() > 4 && llvm::StringRef(words[place].raw).ends_with("s") &&
           !words[place].tells && !words[place].number && !numbers.count(words[place].raw) &&
           !llvm::StringRef(words[place].raw).ends_with("ss");
  };
  if (isPlural(at) && (raw(1) == "with" || raw(1) == "and" || raw(1) == "by") && isPlural(at + 2)) {
    at += 3, inputs = 2;
    return true;
  }
  if ((raw() == "two" || raw() == "both" || raw() == "the") && readTail(at) && inputs == 2)
    return true;
  kept.resize(count);
  at = before;
  return false;
}

/// "of predictions and targets".
bool SpokenWords::pair() {
  static const Set names = {"predictions",
                            "prediction",
                            "preds",
                            "targets",
                            "target",
                            "labels",
                            "truth",
                            "outputs",
                            "estimates",
                            "measurements",
                            "x",
                            "y",
                            "a",
                            "b",
                            "p",
                            "q",
                            "u",
                            "v",
                            "forecast",
                            "forecasts",
                            "observed",
                            "fitted",
                            "expected",
                            "actual",
                            "predicted",
                            "reference",
                            "observations",
                            "references"};
  size_t before = at++;
  take({"the"});
  if (takeAny(names) && take({"and"}) && (take({"the"}) || true) && takeAny(names) && raw() != "[" && raw() != "=") {
    inputs = 2;
    static const Set types = {"float", "floats", "double", "doubles",
                              "ints",  "values", "data"}; // "observed and fitted doubles"
    if (types.count(raw()) && ++at)
      kept.push_back({words[at - 1].begin, words[at - 1].end});
    return true;
  }
  at = before;
  return false;
}

bool SpokenWords::bareTail() {
  size_t before = at, count = kept.size();
  if (readTail(at) && at == words.size())
    return true;
  kept.resize(count);
  at = before;
  return false;
}

/// The words that say what the data are, from `first` on; what led to them is kept, too.
bool SpokenWords::readTail(size_t first) {
  static const Set data = {
      "a",         "an",       "the",      "two",     "of",        "with",     "and",      "by",      "x",
      "array",     "vector",   "matrix",   "float",   "double",    "int",      "half",     "fp32",    "fp64",
      "fp16",      "bf16",     "bfloat16", "single",  "precision", "element",  "unsigned", "row",     "column",
      "tensor",    "both",     "given",    "large",   "real",      "input",    "my",       "our",     ")",
      "-",         "doubles",  "floats",   "ints",    "halves",    "float32",  "float64",  "integer", "integers",
      "numbers",   "whole",    "entire",   "million", "each",      "size",     "length",   "int32",   "int64",
      "data",      "elements", "image",    "signal",  "list",      "sequence", "batch",    "one",     "shape",
      "dimension", "m",        "n",        "*",       "/",         ",",        "k",        "thousand"};
  size_t before = at, last = at;
  at = first;
  bool saysData = false;
  while (at < words.size() &&
         (words[at].number || llvm::isDigit(raw()[0]) || data.count(raw()) || data.count(text()))) {
    static const Set content = {"array", "vector", "matrix",  "tensor", "float",  "doubles", "double",
                                "int",   "half",   "integer", "image",  "signal", "data",    "input"};
    bool isContent = words[at].number || llvm::isDigit(raw()[0]) || content.count(raw()) || content.count(text());
    saysData |= isContent;
    bool isAxis = (text() == "row" || text() == "column") && at > before && llvm::isDigit(words[at - 1].raw[0]);
    if ((text() == "row" || text() == "column") && !isAxis)
      break;
    ++at;
    if (isContent || isAxis || raw(size_t(-1)) == ")")
      last = at;
  }
  at = saysData ? last : before;
  if (!saysData)
    return false;
  if (words[before].raw == "(")
    take({")"});
  kept.push_back({words[before].begin, words[at - 1].end});
  for (size_t word = before; word < at; ++word)
    inputs = words[word].raw == "two" || words[word].raw == "both" ? 2 : inputs;
  return true;
}

bool SpokenWords::startsTail() {
  size_t before = at, count = kept.size();
  unsigned arrays = inputs;
  bool is = tail();
  kept.resize(count);
  inputs = arrays;
  at = before;
  return is;
}

std::string SpokenWords::keptOf(StringRef request) const {
  std::string text;
  for (auto [begin, end] : std::set(kept.begin(), kept.end())) // what was read anew is kept once
    text += " " + request.slice(begin, end).str();
  return text;
}
