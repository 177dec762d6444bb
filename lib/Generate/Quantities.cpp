//===- Quantities.cpp - one notation for each number ----------------------===//
//
// "2 ** 20", "1u << 20", "4 Mi elements", "10 000 floats", "16 million (2^24)", "1 GiB of floats", "m,n,k =
// 64,128,256", "a 12 megapixel photo": before anything else is read, a number is written the way the rest of the reader
// expects it.
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "Rewrites.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"
#include <cmath>

using namespace optiml::gen;
using llvm::StringRef;

namespace {

#define BEFORE "(^|[^a-z0-9_.^])"
#define AFTER "($|[^a-z0-9_])"

const Rewrite rules[] = {
    // "2 ** 20", "1ull << 20", "of 2 to the 20"
    {"([0-9]) ?(\\^|\\*\\*) ?([0-9])", "\\1^\\3"},
    {"([0-9])u?l?l? ?<< ?([0-9])", "\\1<<\\2"},
    {"(of|with|for|on|over|=|is|are|size|length) (2|two) to the (power (of )?)?([0-9]+)(th)?( power)?", "\\1 2^\\5"},
    // "10 000 floats"
    {BEFORE "([0-9][0-9]?[0-9]?) 000 000" AFTER, "\\1\\g<2>000000\\3"},
    {BEFORE "([0-9][0-9]?[0-9]?) 000" AFTER, "\\1\\g<2>000\\3"},
    // "4 Mi", "10 m ints", "16 K elements"
    {"([0-9]) (ki|mi|gi)" AFTER, "\\1\\2\\3"},
    {"([0-9])[ -](k|m|g) "
     "([a-z]+s|float|double|int|half|unsigned|element|sample|64|32|random|double-precision|single-precision|single|"
     "fp32|"
     "fp64|fp16)" AFTER,
     "\\1\\2 \\3\\4"},
    {"([0-9]) ?meg( of)?" AFTER, "\\1m\\3"},
    // "a quarter of a million", "two and a half million", "three billion"
    {"three[- ]quarters (of )?a million", "750 thousand"},
    {"(a |one )?quarter (of )?(a )?million", "250 thousand"},
    {"one and a half (million|thousand|billion)", "1.5 \\1"},
    {"two and a half (million|thousand|billion)", "2.5 \\1"},
    {"one billion", "1 billion"},
    {"two billion", "2 billion"},
    {"three billion", "3 billion"},
    {"four billion", "4 billion"},
    {BEFORE "(a )?dozen (of )?", "\\1 12 "},
    // "500 ffts", "64 x (128x128x128)"
    {BEFORE "([0-9]+) (complex |real )?(fft|dft)s" AFTER, "\\1batch of \\2 \\4s\\5"},
    {BEFORE "([0-9]+) ?[x*] ?\\(([0-9]+) ?x ?([0-9]+) ?x ?([0-9]+)\\)",
     "\\1batch of \\2, m = \\3 , n = \\4 , k = \\5 "},
    {BEFORE "([0-9]+) ?[x*] ?\\(([0-9]+ ?x ?[0-9]+)\\)", "\\1batch of \\2, \\3"},
    // A column of a table is an array where no matrix is around it.
    {"(an?|one|the|this|two|both) ([a-z]+ )?column(s?),? (with |of |having |over )?([0-9][0-9.,e^]*[km]?( million| "
     "thousand| billion)?) rows",
     "\\1 \\2array\\3 of \\5 elements"},
    {"(an?|one|two) (int|integer|float|double|unsigned|numeric|int64) column(s?)" AFTER, "\\1 \\2 array\\3\\4"},
    {"two columns of (int|integer|float|double)s", "two arrays of \\1s"},
    // "averaging with its two neighbours on each side"
    {"(averag[a-z]*|mean|smooth[a-z]*) ([a-z ]*)(two|2) neighbou?rs on (each|either|both) sides?",
     "\\1 moving average window 5 \\2"},
    {"(averag[a-z]*|mean|smooth[a-z]*) ([a-z ]*)(three|3) neighbou?rs on (each|either|both) sides?",
     "\\1 moving average window 7 \\2"},
    {"(average|mean) of (itself|each sample|it) and (the )?4 (samples|values|elements|ones)? "
     "?(before|preceding|previous)",
     "moving average window 5"},
    {"(average|mean) of (itself|each sample|it) and (the )?2 (samples|values|elements|ones)? "
     "?(before|preceding|previous)",
     "moving average window 3"},
    {BEFORE "([0-9.]+) ?\\*? ?\\(?a ?@ ?b\\)?" AFTER, "\\1 a @ b then scale by \\2 \\3"},
    {BEFORE "(two|three|four|five|six|seven|eight|nine|ten|[0-9]+) (matrix )?products of (an? )?([0-9]+ ?x ?[0-9]+)",
     "\\1batched matrix products, batch of \\2, \\5"},
    // What is done with whole rows.
    {"(number|count) of (the )?(rows|columns) (that|which|whose|having|containing)", "unofferedoption"},
    {"(multipl[a-z]*|scal[a-z]*) ([a-z0-9 ]* )?(by|with) (one[- ]|a )?half" AFTER, "\\1 \\2\\3 0.5 \\5"},
    {"(multipl[a-z]*|scal[a-z]*) ([a-z0-9 ]* )?(by|with) (one[- ]|a )quarter" AFTER, "\\1 \\2\\3 0.25 \\5"},
    {"(the |its |their )top (value|element|entry|number|score|mark)" AFTER, "\\1largest \\2\\3"},
    {"(^| )(csr|csc|coo|ell|ellpack) (form|format|storage|layout)" AFTER, "\\1\\2 \\4"},
    {"product of (the )?transposed? (of )?(the )?(matrix )?[a-z] and (the )?(matrix )?[a-z]" AFTER, "matrix product of transposed a and b \\7"},
    {"(sample|entry|element|position|pixel|value) by (sample|entry|position|pixel|value)" AFTER, "elementwise \\3"},
    {"^are (the |these |all )?([a-z0-9 ]+) (in ascending order|in order|sorted)", "check is sorted array of \\2"},
    {"(an?|the|one) ([a-z]+ )?column of ([0-9][0-9.,e^]*[km]?( million| thousand)?) (floats|doubles|ints|integers|values|unsigned)", "\\1 \\2array of \\3 \\5"},
    {"(^| )(low|lower|min|lo) (bound )?(= )?(-?[0-9.]+) (high|hi|upper|max) ", "\\1\\2 \\3\\4\\5, \\6 "},
    {"at least (-?[0-9.]+) and at most (-?[0-9.]+)" AFTER, "between \\1 and \\2\\3"},
    {"(the |its |their )(highest|largest|best|biggest) (score|mark|grade|rating)" AFTER, "\\1largest value\\4"},
    {"rising order", "ascending order"},
    {"falling order", "descending order"},
    {"how many (rows|columns) (have|contain|are|do|hold)", "unofferedoption"},
    {"(with|from|and) the (next|previous|following) (row|column)" AFTER, "unofferedoption \\4"},
    {"order of the (rows|columns)", "unofferedoption"},
    // "softmax with temperature 0.7"
    {"(log[- ]?)?softmax (with|at|using) (a )?temperature( of| =|:| t =)? ?([0-9.]+)", "divide by \\5 then \\1softmax"},
    // "a grid of 256 cubed"
    {"([0-9][0-9])[- ]cubed", "\\1^3"},
    {"([0-9][0-9])[- ]squared" AFTER, "\\1^2\\2"},
    // "nx = 64, ny = 32, nz = 16"
    {BEFORE "n_?x *= *n_?y" AFTER, "\\1n\\2"},
    {BEFORE "n *= *n_?z" AFTER, "\\1n\\2"},
    {BEFORE "n_?x *(=|of) *([0-9])", "\\1width = \\3"},
    {BEFORE "n_?y *(=|of) *([0-9])", "\\1height = \\3"},
    {BEFORE "n_?z *(=|of) *([0-9])", "\\1depth = \\3"},
    // "H=W=56"
    {BEFORE "h *= *w *= *([0-9]+)", "\\1height = \\2, width = \\2"},
    {BEFORE "r *= *s *= *([0-9]+)", "\\1 kernel size \\2x\\2"},
    // What pictures are called by.
    {BEFORE "(2160p|uhd-1)" AFTER, "\\1 3840x2160 \\3"},
    {BEFORE "(1440p|qhd|wqhd|2k)( image| picture| photo| frame| video| display)", "\\1 2560x1440\\3"},
    {BEFORE "480p" AFTER, "\\1 854x480 \\2"},
    {BEFORE "qvga" AFTER, "\\1 320x240 \\2"},
    {BEFORE "svga" AFTER, "\\1 800x600 \\2"},
    {BEFORE "vga" AFTER, "\\1 640x480 \\2"},
    {BEFORE "xga" AFTER, "\\1 1024x768 \\2"},
    {BEFORE "8k( uhd)?( image| picture| photo| frame| video)", "\\1 7680x4320\\3"},
    {"([^l] |^)hd( image| picture| photo| frame| video)", "\\1 1280x720\\2"},
};

/// "2^24", "16 million", "16,777,216"; 0 where it is none.
double valueOf(StringRef text) {
  std::string digits;
  while (!text.empty() && (llvm::isDigit(text[0]) || text[0] == '.' || text[0] == ',' || text[0] == '_')) {
    if (text[0] != ',' && text[0] != '_')
      digits += text[0];
    text = text.drop_front();
  }
  double value = 0, second = 0;
  if (StringRef(digits).getAsDouble(value))
    return 0;
  if (text.consume_front("^"))
    return text.trim().getAsDouble(second) ? 0 : std::pow(value, second);
  if (text.consume_front("<<"))
    return text.trim().getAsDouble(second) ? 0 : std::ldexp(value, int(second));
  if (text.consume_front("e"))
    return text.trim().getAsDouble(second) ? 0 : value * std::pow(10, second);
  return value * llvm::StringSwitch<double>(text.trim())
                     .Case("", 1)
                     .Cases({"k", "thousand"}, 1e3)
                     .Cases({"m", "mi", "mio", "million", "millions"}, 1e6)
                     .Cases({"g", "gi", "billion"}, 1e9)
                     .Default(0);
}

#define NUMBER "([0-9][0-9.,_]*(\\^[0-9]+|<<[0-9]+|e[0-9]+|[kmg]i?| ?thousand| ?millions?| ?billion| ?mio)?)"

/// "16 million floats (2^24)", "2^20 = 1048576 elements": said twice, the exact one counts.
std::string saidOnce(std::string text) {
  static const llvm::Regex inParentheses(
      "(^|[^a-z0-9_.^])" NUMBER
      "(( [a-z-]+)*) ?\\((that is |i\\.e\\. |that's |about |roughly |approximately |ca\\. |=|~|≈)* ?" NUMBER
      "( [a-z]+)?\\)"),
      equated("(^|[^a-z0-9_.^])" NUMBER " ?(=|≈|~) ?" NUMBER "($|[^0-9a-z.])");
  llvm::SmallVector<StringRef, 12> groups;
  auto better = [](StringRef a, StringRef b) { // round and vague gives way
    bool isExact = b.contains('^') || b.contains("<<") || (b.size() > 4 && !b.contains('.') && llvm::isDigit(b.back()));
    bool isFirst = a.contains('^') || a.contains("<<");
    return isExact && !isFirst ? b : a;
  };
  auto areSame = [](StringRef a, StringRef b) {
    double first = valueOf(a), second = valueOf(b);
    return first >= 16 && second >= 16 && first / second > 0.9 && first / second < 1.12;
  };
  // A regular expression costs more than a look for what it must have.
  if (text.find_first_of("(=~") == std::string::npos && !StringRef(text).contains("≈"))
    return text;
  for (unsigned times = 0; times < 4; ++times) {
    if (inParentheses.match(text, &groups) && areSame(groups[2], groups[7])) {
      std::string by = groups[1].str() + better(groups[2], groups[7]).str() + groups[4].str();
      text.replace(size_t(groups[0].data() - text.data()), groups[0].size(), by);
    } else if (equated.match(text, &groups) && areSame(groups[2], groups[5])) {
      std::string by = groups[1].str() + better(groups[2], groups[5]).str() + groups[7].str();
      text.replace(size_t(groups[0].data() - text.data()), groups[0].size(), by);
    } else
      break;
  }
  return text;
}

/// "1 GiB of floats": so many that they fill it.
std::string elementsOfBytes(std::string text) {
  static const llvm::Regex memory(
      "(^|[^a-z0-9_.^])([0-9]+) ?([kmg])i?b( of)?( memory| data)?( of| filled with| as)? "
      "?(floats?|doubles?|ints?|integers|halfs|bytes|fp32|fp64|fp16|unsigned ints|uint8|uchar)");
  llvm::SmallVector<StringRef, 8> groups;
  uint64_t count = 0;
  if (!memory.match(text, &groups) || groups[2].getAsInteger(10, count))
    return text;
  unsigned shift = groups[3] == "k" ? 10 : groups[3] == "m" ? 20 : 30;
  unsigned size = llvm::StringSwitch<unsigned>(groups[7])
                      .Cases({"double", "doubles", "fp64"}, 8)
                      .Cases({"halfs", "fp16"}, 2)
                      .Cases({"bytes", "uint8", "uchar"}, 1)
                      .Default(4);
  std::string by = groups[1].str() + std::to_string((count << shift) / size) + " " + groups[7].str();
  return text.replace(size_t(groups[0].data() - text.data()), groups[0].size(), by);
}

/// "12 megapixels" as a picture of four to three.
std::string megapixels(std::string text) {
  static const llvm::Regex count("(^|[^a-z0-9_.^])([0-9.]+)[- ]?(megapixels?|mp|mpix)($|[^a-z0-9])");
  llvm::SmallVector<StringRef, 8> groups;
  double millions = 0;
  if (!StringRef(text).contains("mp") && !StringRef(text).contains("megapix"))
    return text;
  if (!count.match(text, &groups) || groups[2].getAsDouble(millions) || millions < 0.1 || millions > 1000)
    return text;
  auto width = int64_t(std::round(std::sqrt(millions * 1e6 * 4 / 3)));
  std::string by = groups[1].str() + " " + std::to_string(width) + "x" +
                   std::to_string(int64_t(std::round(millions * 1e6 / double(width)))) + " " + groups[4].str();
  return text.replace(size_t(groups[0].data() - text.data()), groups[0].size(), by);
}

/// "m, n, k = 64, 128, 256" and "m n k 64 128 256" name one after the other.
std::string namedInTurn(std::string text) {
  static const llvm::Regex three("(^|[^a-z0-9_])([mnk]),? ?([mnk]),? ?(and )?([mnk]) ?(=|:|of|are|being)? ?([0-9]+),? "
                                 "?([0-9]+),? ?(and )?([0-9]+)" AFTER),
      two("(^|[^a-z0-9_])([mnk]),? ?([mnk]) ?(=|:|are) ?([0-9]+),? ?([0-9]+)" AFTER),
      cublas("(^|[^a-z0-9_])([mnk])/([mnk])/([mnk]) ?(=|:|of|are)? ?([0-9]+)/([0-9]+)/([0-9]+)" AFTER);
  auto isAlone = [&](size_t at) {
    return StringRef("mnk").contains(text[at]) && (!at || !llvm::isAlnum(text[at - 1])) &&
           (at + 1 == text.size() || !llvm::isAlpha(text[at + 1]));
  };
  bool names = false;
  for (size_t at = 0; at < text.size(); ++at)
    names |= isAlone(at) ||
             (StringRef("mnk").contains(text[at]) && at + 1 < text.size() && StringRef("mnk").contains(text[at + 1]));
  if (!names)
    return text;
  text = three.sub("\\1\\2 = \\7 , \\3 = \\8 , \\5 = \\10 \\11", text);
  text = cublas.sub("\\1\\2 = \\6 , \\3 = \\7 , \\4 = \\8 \\9", text);
  return two.sub("\\1\\2 = \\5 , \\3 = \\6 \\7", text);
}

} // namespace

std::string optiml::gen::quantitiesInDigits(StringRef request) {
  static const Rewrites rewrites(rules);
  std::string text = rewrites(request.str());
  return namedInTurn(megapixels(elementsOfBytes(saidOnce(std::move(text)))));
}

std::string optiml::gen::timesInWords(std::string text) {
  static const std::vector<std::pair<StringRef, StringRef>> factors = {
      {"half", "0.5"}, {"twice", "2"}, {"double", "2"}, {"triple", "3"}, {"three times", "3"}, {"a tenth", "0.1"}};
  static const std::vector<llvm::Regex> patterns = [] {
    std::vector<llvm::Regex> result;
    for (auto [word, factor] : factors)
      result.emplace_back(("(^|[^a-z0-9_-])" + word +
                           " (of )?(the|their|its) (sum|total|product|mean|average|maximum|minimum|norm|dot "
                           "product|variance|square|square root|cube|difference|sine|"
                           "cosine|exponential|logarithm|absolute value)($|[^a-z].*)")
                              .str());
    return result;
  }();
  for (size_t i = 0; i < factors.size(); ++i)
    if (StringRef(text).contains(factors[i].first))
      text = patterns[i].sub(("\\1\\4\\5 then scale by " + factors[i].second).str(), text);
  return text;
}
