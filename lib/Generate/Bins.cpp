//===- Bins.cpp - histograms by the ranges that are counted ---------------===//
//
// "how often each value from 0 to 255 occurs" and "[0, 10), [10, 20), ... [90, 100)" tell how many bins there are.
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Regex.h"

using namespace optiml::gen;
using llvm::StringRef;

/// "[0, 10), [10, 20), ... [90, 100)" are ten bins between 0 and 100.
static std::string tenths(std::string text) {
  static const llvm::Regex intervals("\\[ *([0-9.]+) *, *([0-9.]+) *\\) *,? *(and )?\\[ *[0-9.]+ *, *[0-9.]+ *\\)"
                                     "[^[]*(\\[ *[0-9.]+ *, *[0-9.]+ *\\)[^[]*)*\\[ *([0-9.]+) *, *([0-9.]+) *[])]");
  static const llvm::Regex open(
      "\\[ *([0-9.]+) *, *([0-9.]+) *\\) *,? *\\[ *[0-9.]+ *, *[0-9.]+ *\\)[^a-z]*(\\.\\.\\.|…)"),
      range("(between|from) (-?[0-9.]+) (and|to) (-?[0-9]+(\\.[0-9]+)?)");
  llvm::SmallVector<StringRef, 8> groups;
  double low, next, high;
  llvm::SmallVector<StringRef, 8> ends;
  static const llvm::Regex goesOn("(\\.\\.\\.|…) *,? *(and |to )?\\[");
  if (!goesOn.match(text) && open.match(text, &groups) && range.match(text, &ends) && !groups[1].getAsDouble(low) &&
      !groups[2].getAsDouble(next) && !ends[4].getAsDouble(high) && next > low &&
      high > next) // "[0, 10), [10, 20), ..."
    return open.sub("a histogram with " + std::to_string(int((high - low) / (next - low) + 0.5)) + " bins,", text);
  if (!intervals.match(text, &groups) || groups[1].getAsDouble(low) || groups[2].getAsDouble(next) ||
      groups[6].getAsDouble(high) || next <= low || high <= next)
    return text;
  std::string bins = std::to_string(int((high - low) / (next - low) + 0.5));
  return intervals.sub(
      "a histogram between " + groups[1].str() + " and " + groups[6].str() + ", with " + bins + " bins,", text);
}

/// "how often each value from 0 to 255 occurs" counts in 256 bins.
static std::string binsOfValues(std::string text) {
  static const llvm::Regex range(
      "(each|every|all|possible) ([a-z]+ "
      "){0,2}(values?|levels?|intensit(y|ies)|numbers?|digits?|scores?|grades?|labels?|keys?|bytes?),? "
      "*\\(?(from |between |in |of |in the range )?(the range )?[[]?0 ?(\\.\\.+|to|and|-|,|through) ?([0-9]+)[])]?");
  static const llvm::Regex counts("how (often|many)|count|histogram|frequenc|occur");
  llvm::SmallVector<StringRef, 8> groups;
  unsigned last = 0;
  if (!counts.match(text) || !range.match(text, &groups) || groups[8].getAsInteger(10, last))
    return text;
  return range.sub("\\1 value, " + std::to_string(last + 1) + " bins,", text);
}

/// "a histogram of integers with values from 0 to 99"
static std::string binsOfIntegers(std::string text) {
  static const llvm::Regex range("(int|integer|byte|uint8|number)s,? (with )?(values? )?(all )?(that lie |lying "
                                 "|ranging )?(from|between|in) 0 (to|and) ([0-9]+)");
  llvm::SmallVector<StringRef, 10> groups;
  unsigned last = 0;
  if (!StringRef(text).contains("histogram") || StringRef(text).contains("bin") || !range.match(text, &groups) ||
      groups[8].getAsInteger(10, last))
    return text;
  return range.sub("\\1s, " + std::to_string(last + 1) + " bins", text);
}

std::string optiml::gen::binsInWords(StringRef text) { return binsOfIntegers(binsOfValues(tenths(text.str()))); }
