//===- Words.cpp - plain words to tokens ----------------------------------===//
#include "optiml/Generate/Words.h"
#include "Asides.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Stems
//===----------------------------------------------------------------------===//

static bool replaceEnd(std::string &word, StringRef end, StringRef by, size_t least = 3) {
  if (!StringRef(word).ends_with(end) || word.size() < end.size() + least)
    return false;
  word = word.substr(0, word.size() - end.size()) + by.str();
  return true;
}

/// Plural, -ing, -ed, -ise/-isation and -our, in one deterministic order; words.txt lists what is irregular.
std::string Vocabulary::stem(std::string word) {
  if (word.size() <= 3 || llvm::isDigit(word[0]))
    return word;
  if (!replaceEnd(word, "ies", "y") && !StringRef(word).ends_with("ss") && !StringRef(word).ends_with("us") &&
      !StringRef(word).ends_with("is"))
    if (!replaceEnd(word, "sses", "ss") && !replaceEnd(word, "xes", "x") && !replaceEnd(word, "ches", "ch") &&
        !replaceEnd(word, "shes", "sh"))
      replaceEnd(word, "s", "", 3);
  for (StringRef end : {"isation", "ization", "ising", "izing", "ised", "ized", "iser", "izer", "ise", "ize"})
    if (replaceEnd(word, end, "iz", 4))
      return word;
  bool verb = replaceEnd(word, "ing", "", 3) || replaceEnd(word, "ed", "", 3);
  size_t n = word.size();
  if (verb && n > 3 && word[n - 1] == word[n - 2] && !StringRef("lsz").contains(word[n - 1]))
    word.pop_back(); // summing, clamped
  replaceEnd(word, "ly", "", 5); // linearly, independently
  replaceEnd(word, "e", "", 3);
  if (replaceEnd(word, "our", "or", 3))
    return word;
  return word;
}

std::string Vocabulary::canonical(std::string word) const {
  auto whole = synonyms.find(word);
  if (whole != synonyms.end())
    return whole->second;
  std::string stemmed = stem(std::move(word));
  auto it = synonyms.find(stemmed);
  return it == synonyms.end() ? stemmed : it->second;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Not where the commas are those of a shape: "(512,512)".
static bool isThousandsSeparator(StringRef text, size_t i) {
  size_t begin = text.find_last_not_of("0123456789,_'", i), end = text.find_first_not_of("0123456789,_'", i);
  bool isList = begin != StringRef::npos && end != StringRef::npos && StringRef("([").contains(text[begin]) && StringRef(")]").contains(text[end]);
  return !isList && i + 3 < text.size() && (text[i] == ',' || text[i] == '_' || text[i] == '\'') && llvm::isDigit(text[i + 1]) &&
         llvm::isDigit(text[i + 2]) && llvm::isDigit(text[i + 3]) &&
         (i + 4 >= text.size() || !llvm::isDigit(text[i + 4]));
}

/// Digits with separators, point, exponent, "2^20", and the units k, M, G (powers of 1024, as sizes of arrays are).
static std::optional<double> readNumber(StringRef text, size_t &at) {
  size_t i = at;
  std::string digits;
  while (i < text.size() && (llvm::isDigit(text[i]) || (!digits.empty() && isThousandsSeparator(text, i)))) {
    if (llvm::isDigit(text[i]))
      digits += text[i];
    ++i;
  }
  if (i + 1 < text.size() && text[i] == '.' && llvm::isDigit(text[i + 1])) {
    digits += text[i++];
    while (i < text.size() && llvm::isDigit(text[i]))
      digits += text[i++];
  }
  if (digits.empty() || digits.size() > 18)
    return std::nullopt;
  size_t e = i + 1 < text.size() && text[i] == 'e' ? i + 1 + (text[i + 1] == '-' || text[i + 1] == '+') : 0;
  if (e && e < text.size() && llvm::isDigit(text[e])) {
    digits += 'e';
    for (++i; i < text.size() && (llvm::isDigit(text[i]) || i < e) && digits.size() < 24; ++i)
      digits += text[i];
  }
  double value = 0;
  if (StringRef(digits).getAsDouble(value))
    return std::nullopt;
  if (i + 1 < text.size() && (text[i] == '^' || text.substr(i).starts_with("**"))) {
    size_t next = i + (text[i] == '^' ? 1 : 2);
    unsigned power = 0;
    size_t end = next;
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    if (!text.slice(next, end).getAsInteger(10, power) && power <= 62) {
      value = std::pow(value, power);
      i = end;
    }
  }
  if (text.substr(i).starts_with("<<")) {
    unsigned bits = 0;
    size_t end = i + 2;
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    if (!text.slice(i + 2, end).getAsInteger(10, bits) && bits <= 40) {
      value = std::ldexp(value, int(bits));
      i = end;
    }
  }
  StringRef rest = text.substr(i);
  bool spaced = rest.consume_front(" ") || rest.consume_front("-");
  auto ends = [&](StringRef unit) {
    bool isTimes = rest.size() > unit.size() + 1 && rest[unit.size()] == 'x' && llvm::isDigit(rest[unit.size() + 1]);
    return rest.starts_with(unit) && (rest.size() == unit.size() || isTimes || !llvm::isAlnum(rest[unit.size()]));
  };
  double factor = 1;
  size_t length = 0;
  for (auto [unit, scale] : std::initializer_list<std::pair<StringRef, double>>{{"thousand", 1e3},
                                                                                {"million", 1e6},
                                                                                {"billion", 1e9},
                                                                                {"mega", 1048576.0},
                                                                                {"megapixel", 1e6},
                                                                                {"megapixels", 1e6},
                                                                                {"mio", 1e6},
                                                                                {"bn", 1e9}})
    if (ends(unit))
      factor = scale, length = unit.size() + spaced;
  if (!spaced)
    for (auto [unit, scale] : std::initializer_list<std::pair<StringRef, double>>{
             {"k", 1024.0}, {"ki", 1024.0}, {"m", 1048576.0}, {"mi", 1048576.0}, {"g", 1073741824.0}, {"gi", 1073741824.0}})
      if (ends(unit)) {
        // "64k" is 64 * 1024, "500k" half a million.
        bool isBinary = unit.size() > 1 || (value == std::floor(value) && value >= 1 && value < 1e6 &&
                                            (uint64_t(value) & (uint64_t(value) - 1)) == 0);
        factor = isBinary ? scale : scale == 1024.0 ? 1e3 : scale == 1048576.0 ? 1e6 : 1e9;
        length = unit.size();
      }
  at = i + length;
  return value * factor;
}

std::string optiml::gen::shortestNumber(double value) {
  char buffer[40];
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    if (strtod(buffer, nullptr) == value)
      break;
  }
  return buffer;
}

static int spelledNumber(StringRef word) {
  static const char *const words[] = {"two",   "three", "four",   "five",   "six",      "seven",   "eight", "nine", "ten",
                                      "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"};
  for (int i = 0; i < 15; ++i)
    if (word == words[i])
      return i + 2;
  return word == "one" ? 1 : word == "twenty" ? 20 : word == "fifty" ? 50 : word == "hundred" ? 100 : word == "thousand" ? 1000
         : word == "million" ? 1000000 : 0;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// Lower case, with the signs of other alphabets in ASCII.
static std::string plain(StringRef text) {
  std::string result = text.take_front(2000).lower();
  for (auto [from, to] :
       std::initializer_list<std::pair<const char *, const char *>>{{"×", "x"},
                                                                    {"·", "*"},
                                                                    {"–", "-"},
                                                                    {"—", " , "},
                                                                    {"−", "-"},
                                                                    {"’", "'"},
                                                                    {"²", "^2"},
                                                                    {"³", "^3"},
                                                                    {"â", "a"},
                                                                    {"∑", " sum "},
                                                                    {"Σ", " sum "},
                                                                    {"√", " sqrt "},
                                                                    {"→", "->"},
                                                                    {"≤", "<="},
                                                                    {"≥", ">="},
                                                                    {"…", "..."},
                                                                    {"ᵀ", "^t"},
                                                                    {"α", "alpha"},
                                                                    {"β", "beta"},
                                                                    {"⊙", "*"},
                                                                    {"∘", "*"},
                                                                    {"“", "\""},
                                                                    {"”", "\""},
                                                                    {"‖", " norm "},
                                                                    {"element-wise", "elementwise"},
                                                                    {"element wise", "elementwise"},
                                                                    {"element by element", "elementwise"},
                                                                    {"one dimensional", "1d"},
                                                                    {"one-dimensional", "1d"},
                                                                    {"in three dimensions", "in 3d"},
                                                                    {"in two dimensions", "in 2d"},
                                                                    {"in one dimension", "in 1d"},
                                                                    {"two dimensional", "2d"},
                                                                    {"two-dimensional", "2d"},
                                                                    {"three dimensional", "3d"},
                                                                    {"three-dimensional", "3d"},
                                                                    {"square root", "sqrt"},
                                                                    {"at least ", "notless "},
                                                                    {"at most ", "notmore "},
                                                                    {"by-element", "by element"}})
    for (size_t at; (at = result.find(from)) != std::string::npos;)
      result.replace(at, strlen(from), to);
  return result;
}

static std::vector<Token> split(StringRef text) {
  std::vector<Token> result;
  bool afterColon = false;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    bool negative = c == '-' && i + 1 < text.size() && llvm::isDigit(text[i + 1]) &&
                    (i == 0 || StringRef(" [(=").contains(text[i - 1]));
    if (llvm::isDigit(c) || negative) {
      size_t begin = i, at = i + negative;
      if (std::optional<double> value = readNumber(text, at)) {
        Token token;
        double base = 0;
        token.text = "#";
        token.raw = text.slice(begin, at).str();
        token.values = {negative ? -*value : *value};
        // "64^3" is a shape; "2^20" and "10^3" are numbers.
        StringRef(token.raw).split('^').first.getAsDouble(base);
        char power = StringRef(token.raw).contains('^') ? token.raw.back() : '0';
        if (base >= 16 && (power == '2' || power == '3') && token.values[0] == std::pow(base, power - '0'))
          token.values.assign(size_t(power - '0'), base);
        // "2d", "3rd", "5-point", "64-bit" are words; "4096x1024" is not.
        StringRef rest = text.substr(at);
        StringRef dash = rest;
        dash.consume_front("-");
        if (rest.starts_with("d") && (rest.size() == 1 || !llvm::isAlnum(rest[1])))
          token = {token.raw + "d", token.raw + "d", {}, false}, at += 1;
        else if (token.values[0] <= 27 && (dash.ltrim().starts_with("point ") || dash.ltrim() == "point")) // a stencil
          token = {token.raw + "point", token.raw + "point", {}, false}, at += rest.size() - dash.ltrim().size() + 5;
        else if (token.values[0] <= 27 && dash.starts_with("pt "))
          token = {token.raw + "point", token.raw + "point", {}, false}, at += rest.size() - dash.size() + 2;
        else if (dash.ltrim().starts_with("bit"))
          token = {token.raw + "bit", token.raw + "bit", {}, false}, at += rest.size() - dash.ltrim().size() + 3;
        else if ((dash.starts_with("d ") || dash == "d") && rest.size() != dash.size())
          token = {token.raw + "d", token.raw + "d", {}, false}, at += 2;
        result.push_back(std::move(token));
        i = at;
        continue;
      }
      ++i;
    } else if (llvm::isAlpha(c)) {
      size_t end = i;
      while (end < text.size() && llvm::isAlnum(text[end]) &&
             !(text[end] == 'x' && end == i && end + 1 < text.size() && llvm::isDigit(text[end + 1])))
        ++end;
      if (end == i) // the x of "4096x1024"
        end = i + 1;
      if (end > i + 4 && text[end - 1] == 'd' && StringRef("123").contains(text[end - 2])) // "conv2d"
        end -= 2;
      std::string word = text.slice(i, end).str();
      Token token{word, word, {}, false};
      if (int value = spelledNumber(word)) {
        token.values = {double(value)};
        token.spelled = true;
      }
      StringRef rest = text.substr(end);
      token.explains = std::exchange(afterColon, false);
      token.qualifies = (rest.starts_with("::") || rest.starts_with(".")) && rest.ltrim(".:").size() &&
                        llvm::isAlpha(rest.ltrim(".:")[0]);
      i = end;
      // "one million", "two thousand" are numbers like any other.
      bool isCounted = !result.empty() && (result.back().raw == "a" || result.back().spelled);
      if (token.spelled && token.values[0] >= 100 && isCounted) {
        double count = result.back().spelled ? result.back().values[0] : 1;
        result.back() = {word, word, {count * token.values[0]}, token.values[0] == 100}; // "one hundred million"
        continue;
      }
      result.push_back(std::move(token));
      i = end;
    } else {
      afterColon |= c == ':' && i + 1 < text.size() && text[i + 1] == ' ';
      if (StringRef("+*=,[](){};/#").contains(c) || (c == '.' && (i + 1 == text.size() || text[i + 1] == ' ')))
        result.push_back({std::string(1, c), std::string(1, c), {}, false});
      ++i;
    }
  }
  return result;
}

static bool isTimes(const Token &token) {
  return token.raw == "x" || token.raw == "by" || token.raw == "on" || token.raw == "*";
}

/// What a number counts, where that does not tell which dimension it is.
static bool isThing(const Token &token) {
  static const std::set<StringRef> dimensions = {
      "row",      "rows",   "column", "columns", "cols", "col",        "width", "height", "wide", "high",
      "channels", "pixels", "steps",  "heads",   "dims", "dimensions", "k",     "m",      "n"};
  return token.values.empty() && llvm::isAlpha(token.raw[0]) && token.raw.size() > 1 && !dimensions.count(token.raw);
}

/// "multiply … by": what is behind it is no extent.
static bool takesBy(llvm::ArrayRef<Token> tokens, size_t end) {
  static const std::set<StringRef> verbs = {
      "divide",  "divided", "multiply", "multiplied",  "scale",   "scaled",  "increase", "rotate",  "shift", "raise",
      "scaling", "divides", "decrease", "multiplying", "shifted", "rotated", "dividing", "enlarge", "modulo"};
  return llvm::any_of(tokens.take_front(end), [](const Token &token) { return verbs.count(token.raw); });
}

/// "4096 x 1024", "[4096, 1024]" become one token.
static std::vector<Token> joinShapes(std::vector<Token> tokens) {
  std::vector<Token> result;
  auto digit = [&](size_t i) { return i < tokens.size() && tokens[i].isNumber() && !tokens[i].spelled; };
  for (size_t i = 0; i < tokens.size(); ++i) {
    Token token = tokens[i];
    size_t end = i;
    bool bracket = (token.raw == "[" || token.raw == "(") && digit(i + 1) && i + 2 < tokens.size() && tokens[i + 2].raw == ",";
    if (bracket) {
      size_t at = i + 1;
      token = tokens[at];
      while (at + 2 < tokens.size() && tokens[at + 1].raw == "," && digit(at + 2)) {
        token.values.push_back(tokens[at + 2].values[0]);
        token.raw += "," + tokens[at + 2].raw;
        at += 2;
      }
      end = at + (at + 1 < tokens.size() && (tokens[at + 1].raw == "]" || tokens[at + 1].raw == ")"));
      bool isMixed = (tokens[i].raw == "[") != (tokens[end].raw == "]");
      bool isRange = token.values.size() == 2 && token.values[0] < token.values[1] &&
                     (isMixed || token.values[0] <= 0 || token.values[0] != std::floor(token.values[0]));
      if (isRange)
        token.text = "interval";
    } else if (digit(i) && digit(i + 3) && tokens[i].isNumber() &&
               (tokens[i + 2].raw == "x" || (tokens[i + 2].raw == "by" && !takesBy(tokens, i))) &&
               isThing(tokens[i + 1]) && i + 4 < tokens.size() && isThing(tokens[i + 4])) {
      // "5000 genes x 48 samples"
      token.values.push_back(tokens[i + 3].values[0]);
      token.raw += "x" + tokens[i + 3].raw;
      end = i + 3;
    } else if (digit(i)) {
      // "64 on 200", but not "3x3 on 32 channels".
      auto isOn = [&](size_t at) {
        static const std::set<StringRef> ofGrid = {"a", "an", "the", "of", "is", "size", "grid", "image", "matrix", "first", "second"};
        bool isNamed = i > 0 && at == i + 1 && !isTimes(tokens[i - 1]) && !ofGrid.count(tokens[i - 1].raw); // "padding 2 on 1000"
        return tokens[at].raw == "on" && (isNamed || at != i + 1 || (i > 0 && isTimes(tokens[i - 1])) ||
                                          (at + 2 < tokens.size() && isTimes(tokens[at + 2])));
      };
      // "divide a vector of length 600 by 3", "dropout 0.9 on 4096"
      auto isOperand = [&](size_t at) {
        static const std::set<StringRef> ends = {",", ".", ";", "and", "then", "in", "followed", "with"};
        bool isLast = at + 2 >= tokens.size() || ends.count(tokens[at + 2].raw);
        return tokens[at].raw == "by" && takesBy(tokens, i) && isLast &&
               llvm::count_if(tokens, [](const Token &t) { return t.raw == "by"; }) == 1 &&
               (!i || tokens[i - 1].raw != "is");
      };
      auto isWhole = [&](size_t at) { return tokens[at].values[0] == std::floor(tokens[at].values[0]); };
      // "128x64 by 64x32" are two.
      auto isOther = [&](size_t at) { return tokens[at].raw != tokens[i + 1].raw && tokens[i + 1].raw == "x"; };
      while (end + 2 < tokens.size() && isTimes(tokens[end + 1]) && !isOn(end + 1) && !isOther(end + 1) &&
             digit(end + 2) && isWhole(end) && isWhole(end + 2) && !isOperand(end + 1)) {
        token.values.push_back(tokens[end + 2].values[0]);
        token.raw += "x" + tokens[end + 2].raw;
        end += 2;
      }
    }
    result.push_back(std::move(token));
    i = end;
  }
  return result;
}

/// "torch.cumsum", "std::sort": the name counts, not where it is from. A variable ("x.sum()") stays.
std::vector<Token> Vocabulary::withoutQualifiers(std::vector<Token> tokens) const {
  llvm::erase_if(tokens, [&](const Token &token) {
    return token.qualifies && (qualifiers.count(token.raw) || (token.raw.size() > 1 && !isKnown(token.raw)));
  });
  return tokens;
}

/// Whether the kernel at `at` is a filter ("a 5x5 kernel", "kernel size 3") and no program.
static bool isFilter(const std::vector<Token> &tokens, size_t at) {
  static const std::set<StringRef> beside = {
      "size", "sizes", "width", "length", "radius",  "gaussian", "smoothing",    "convolution", "convolve",
      "conv", "blur",  "taps",  "sobel",  "pooling", "filter",   "coefficients", "weights"};
  for (size_t other = at > 3 ? at - 3 : 0; other < std::min(at + 4, tokens.size()); ++other)
    if (other != at &&
        (beside.count(tokens[other].raw) || (!tokens[other].values.empty() && tokens[other].values[0] < 64)))
      return true;
  return false;
}

/// "a 1920x1080 image" is so wide and so high, where "(1080, 1920)" and "a 2048x1024 grid" are rows and columns.
static void readPictures(std::vector<Token> &tokens) {
  static const std::set<StringRef> pictures = {"image",  "images", "picture", "pictures",   "photo", "photos", "frame",
                                               "frames", "pixel",  "pixels",  "resolution", "video", "screen"};
  // What is always a picture says so itself (its shape is read as width and height).
  if (llvm::any_of(tokens, [](const Token &token) { return token.raw == "mandelbrot" || token.raw == "fractal"; }))
    return;
  for (size_t at = 0; at < tokens.size(); ++at) {
    std::vector<double> &values = tokens[at].values;
    if (values.size() != 2 || values[0] <= values[1] || values[1] < 32 || StringRef(tokens[at].raw).contains(','))
      continue;
    for (size_t other = at > 3 ? at - 3 : 0; other < std::min(at + 4, tokens.size()); ++other)
      if (pictures.count(tokens[other].raw)) {
        std::swap(values[0], values[1]);
        break;
      }
  }
}

/// "the number of zeros" is their count.
static bool isCount(const std::vector<Token> &tokens, size_t at) {
  static const std::set<StringRef> kinds = {"even", "odd"}; // "the greatest even number of an array"
  if (at > 1 && kinds.count(tokens[at - 1].raw) && tokens[at - 2].raw.size() > 4)
    return false;
  static const std::set<StringRef> extremes = {"biggest", "largest", "smallest", "highest", "lowest", "greatest", "maximum", "minimum"};
  if (at > 0 && extremes.count(tokens[at - 1].raw)) // "the biggest number of each row"
    return false;
  return (tokens[at].raw == "number" || tokens[at].raw == "amount") && at + 1 < tokens.size() &&
         tokens[at + 1].raw == "of";
}

std::vector<Token> Vocabulary::tokenize(StringRef request) const {
  std::string text = withoutAsides(numeralsInDigits(quantitiesInDigits(plain(request))));
  std::vector<Token> tokens = joinShapes(withoutQualifiers(split(text)));
  for (Token &token : tokens)
    if (token.values.empty() || token.spelled)
      token.text = canonical(token.text);
  for (size_t at = 0; at < tokens.size(); ++at)
    if (isCount(tokens, at))
      tokens[at].text = canonical("count");
    else if ((tokens[at].raw == "kernel" || tokens[at].raw == "kernels") && !isFilter(tokens, at))
      tokens[at].text = canonical("program");
  readPictures(tokens);
  return tokens;
}

std::vector<std::string> Vocabulary::words(StringRef phrase) const {
  std::vector<std::string> result;
  std::vector<Token> tokens = split(plain(phrase));
  for (size_t at = 0; at < tokens.size(); ++at)
    result.push_back(tokens[at].text == "#" ? tokens[at].raw
                                            : canonical(isCount(tokens, at) ? "count" : tokens[at].text));
  return result;
}

std::optional<Span> optiml::gen::matchPhrase(const std::vector<Token> &tokens, size_t start,
                                             const std::vector<std::string> &phrase, unsigned gap,
                                             const std::vector<bool> &used) {
  Span span;
  size_t at = start;
  for (size_t w = 0; w < phrase.size(); ++w) {
    bool adjacent = w > 0 && phrase[w - 1] == "#"; // "10 largest"
    unsigned others = w == 0 || adjacent ? 0 : phrase[w] == "#" ? std::min(gap, 1u) : gap, depth = 0;
    for (;; ++at) {
      if (at >= tokens.size())
        return std::nullopt;
      const Token &token = tokens[at];
      bool equal = (token.text == phrase[w] && (!token.isShape() || token.text == "interval")) ||
                   (phrase[w] == "#" && (token.spelled || token.isNumber())) ||
                   (token.isNumber() &&
                    (token.raw == phrase[w] ||
                     (token.spelled && token.values[0] < 10 && phrase[w] == std::to_string(int(token.values[0])))) &&
                    !(w == 0 && at > 0 && tokens[at - 1].raw == "="));
      if (equal && !used[at])
        break;
      if (w && !depth && (token.raw == "," || token.raw == "." || token.raw == ";" || token.raw == "then"))
        return std::nullopt; // a phrase does not reach over the end of a clause
      // What is in parentheses does not separate, nor do articles and the like.
      static const std::set<StringRef> light = {"(", ")", "the", "a", "an", "of", "x", "that", "are", "is"};
      bool isSize = !token.values.empty() && !token.spelled;
      bool counts = !depth && !used[at] && !light.count(token.raw) && !(isSize && w && phrase[w] != "#");
      // "exp(x) times y" multiplies what stands before the parenthesis is closed, not x
      if (token.raw == ")" && !depth && w && tokens[start].raw.size() == 1)
        return std::nullopt;
      if (counts && !others)
        return std::nullopt;
      others -= counts;
      if (token.raw == "(" && phrase[w] == "#")
        return std::nullopt;
      depth += token.raw == "(" && !adjacent && w;
      depth -= token.raw == ")" && depth;
      if (!w)
        return std::nullopt;
    }
    span.at.push_back(at++);
  }
  return span;
}
