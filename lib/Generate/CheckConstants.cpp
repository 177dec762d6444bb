//===- CheckConstants.cpp - what a request must say of an operation -------===//
#include "Reader.h"

using namespace optiml;
using namespace optiml::gen;

/// "how often is 3 in the array": a number that counts nothing, where the operation needs one.
void Reader::readAsked() {
  static const std::set<StringRef> places = {"in", "among", "within", "somewhere", "inside"};
  for (const Named &wanted : numbersWanted())
    for (size_t at = 0; at + 1 < tokens.size(); ++at)
      if (wanted.target && !given[wanted.name] && heavy.op->asks.count(wanted.name) && tokens[at].isNumber() &&
          !tokens[at].spelled && !used[at] && places.count(tokens[at + 1].raw))
        setNumber(wanted.name, tokens[at].values[0], at);
}

static bool isConstant(StringRef raw) {
  static const std::set<StringRef> words = {"constant", "scalar", "factor", "same", "number", "value", "given"};
  return words.count(raw) != 0;
}

/// "vector add" adds no constant that nobody gave, and "clamp an array" has no bounds; "times a constant" has one,
/// whose value the program takes from its default.
llvm::Error Reader::checkAsked() {
  std::vector<bool> none(tokens.size(), false);
  auto isSaid = [&](const std::string &words) {
    std::vector<std::string> phrase = vocabulary.words(words);
    for (size_t at = 0; at < tokens.size(); ++at)
      if (matchPhrase(tokens, at, phrase, 0, none))
        return true;
    return false;
  };
  // "scale each row by the reciprocal of its maximum": by what is no constant
  bool isByOther = false;
  for (size_t at = 0; at + 2 < tokens.size(); ++at)
    isByOther |= tokens[at].raw == "by" &&
                 (tokens[at + 1].raw == "the" || tokens[at + 1].raw == "its" || tokens[at + 1].raw == "their") &&
                 !isConstant(tokens[at + 2].raw);
  std::vector<const Operation *> parts = {heavy.op};
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages)
      parts.push_back(stage.operation);
  // "none below 0 or above 10" in either order
  for (auto *stages : {&result.before, &result.after})
    for (Stage &stage : *stages)
      if (auto low = stage.reals.find("low"), high = stage.reals.find("high");
          low != stage.reals.end() && high != stage.reals.end() && low->second > high->second)
        std::swap(low->second, high->second);
  for (const Operation *op : parts)
    for (const auto &[name, phrases] : op->asks)
      if (!given[name] && (isByOther || llvm::none_of(phrases, isSaid))) {
        lackingOne = op;
        return refuse("the " + name + " of " + op->name + " is not told");
      }
  return llvm::Error::success();
}
