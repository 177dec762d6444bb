//===- Numerals.cpp - numbers in words as digits --------------------------===//
//
// "thirty-two", "two hundred and fifty-six", "the sixth power", "the ninety-fifth percentile", "the lower quartile". A
// single small word ("two", "eight", "twenty") stays: it may count what the operation has anyway.
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <array>
#include <set>

using namespace optiml::gen;
using llvm::StringRef;

namespace {

struct Word {
  StringRef text;
  size_t begin = 0;
};

/// What the words read so far amount to: "two hundred and six thousand" is 206 in the part, then 206000 in the whole.
struct Numeral {
  uint64_t whole = 0, part = 0, last = 0; ///< last: the weight of the word before
  unsigned words = 0;
  bool isOrdinal = false;

  uint64_t value() const { return whole + part; }
  bool take(StringRef word);
  bool add(uint64_t value);
};

constexpr std::array<StringRef, 20> units = {"",        "one",     "two",       "three",    "four",
                                             "five",    "six",     "seven",     "eight",    "nine",
                                             "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                             "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"},
                                    ordinals = {"",           "",           "",
                                                "",           "fourth",     "fifth",
                                                "sixth",      "seventh",    "eighth",
                                                "ninth",      "tenth",      "eleventh",
                                                "twelfth",    "thirteenth", "fourteenth",
                                                "fifteenth",  "sixteenth",  "seventeenth",
                                                "eighteenth", "nineteenth"};
constexpr std::array<StringRef, 10> tens = {"",      "",      "twenty",  "thirty", "forty",
                                            "fifty", "sixty", "seventy", "eighty", "ninety"};

bool Numeral::add(uint64_t value) {
  // "two three" are two numbers, "twenty three" is one.
  uint64_t room = value < 10 ? 20 : value < 100 ? 100 : 1000;
  if (words && last < room)
    return false;
  if (words && last >= 20 && last < 100 && value >= 10)
    return false;
  part += value;
  last = value;
  ++words;
  return true;
}

bool Numeral::take(StringRef word) {
  if (isOrdinal)
    return false;
  for (size_t i = 1; i < units.size(); ++i)
    if (word == units[i])
      return add(i);
  for (size_t i = 2; i < tens.size(); ++i)
    if (word == tens[i])
      return add(10 * i);
  // "thirty-second" alone is too easily the second of something.
  bool behindTens = words && last >= 20 && last < 100;
  for (size_t i = 1; i < ordinals.size(); ++i) {
    StringRef name = ordinals[i].empty() ? (i == 1 ? "first" : i == 2 ? "second" : "third") : ordinals[i];
    if (word == name && (i > 3 || behindTens) && add(i))
      return isOrdinal = true;
  }
  for (size_t i = 2; i < tens.size(); ++i)
    if (word.ends_with("ieth") && word.drop_back(4) == tens[i].drop_back(1) && add(10 * i))
      return isOrdinal = true;
  if (!words)
    return false;
  if (word == "hundred" && part && part < 20 && last < 20) {
    part *= 100;
    last = 1000;
  } else if (word == "thousand" && part && whole < 1000) {
    whole += part * 1000;
    part = 0;
    last = 1000;
  } else
    return false;
  ++words;
  return true;
}

llvm::SmallVector<Word, 64> wordsOf(StringRef text) {
  llvm::SmallVector<Word, 64> result;
  for (size_t i = 0; i < text.size();) {
    if (!llvm::isAlnum(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '_'))
      ++end;
    result.push_back({text.slice(i, end), i});
    i = end;
  }
  return result;
}

} // namespace

std::string optiml::gen::numeralsInDigits(StringRef text) {
  llvm::SmallVector<Word, 64> words = wordsOf(text);
  auto endOf = [&](size_t at) { return words[at].begin + words[at].text.size(); };
  auto joined = [&](size_t at) { // with the word before it
    StringRef between = text.slice(endOf(at - 1), words[at].begin);
    return between == " " || between == "-";
  };
  std::string result;
  size_t copied = 0;
  for (size_t at = 0; at < words.size(); ++at) {
    Numeral numeral;
    size_t next = at;
    while (next < words.size() && (next == at || joined(next))) {
      bool isAnd = words[next].text == "and" && numeral.last == 1000 && next + 1 < words.size() && joined(next + 1);
      Numeral further = numeral;
      // "one hundred and twenty"
      if (isAnd && further.take(words[next + 1].text) && further.part % 100)
        numeral = further, next += 2;
      else if (!isAnd && numeral.take(words[next].text))
        ++next;
      else
        break;
    }
    // "a hundred thousand" and single small words are read later; "two million-element vectors" are two.
    bool isSmall = numeral.words == 1 && !numeral.isOrdinal && numeral.value() < 30;
    static const std::set<StringRef> ofOrdinal = {"power",   "largest", "smallest",   "biggest", "greatest",
                                                  "highest", "lowest",  "percentile", "root",    "max",
                                                  "min",     "maximum", "minimum",    "order"};
    bool isRank = next < words.size() &&
                  (ofOrdinal.count(words[next].text) || text.slice(0, words[at].begin).ends_with("to the "));
    isRank |= next == words.size() && text.slice(0, words[at].begin).ends_with("to the ");
    if (!numeral.words || isSmall || (numeral.isOrdinal && !isRank))
      continue;
    result +=
        text.slice(copied, words[at].begin).str() + std::to_string(numeral.value()) + (numeral.isOrdinal ? "th" : "");
    copied = endOf(next - 1);
    at = next - 1;
  }
  result += text.substr(copied).str();
  // "a three by three window"
  for (auto [word, digits] : {std::pair("two", "2x2"), std::pair("three", "3x3"), std::pair("four", "4x4"),
                              std::pair("five", "5x5"), std::pair("seven", "7x7")})
    for (std::string between : {" by ", "-by-", " x "})
      for (size_t at; (at = result.find(word + between + word)) != std::string::npos;)
        result.replace(at, 2 * strlen(word) + between.size(), digits);
  return result;
}
