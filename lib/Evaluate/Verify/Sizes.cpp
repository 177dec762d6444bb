//===- Sizes.cpp - odd sizes, and what is launched --------------------------===//
#include "Sizes.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace optiml;

std::vector<std::vector<std::string>> optiml::oddSizes(const std::vector<std::string> &arguments) {
  std::vector<size_t> places;
  std::vector<long> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    long v;
    if (!llvm::StringRef(arguments[i]).getAsInteger(10, v) && v >= 4 && v < (1L << 31)) {
      places.push_back(i);
      values.push_back(v);
    }
  }
  std::vector<std::vector<std::string>> result;
  auto add = [&](const std::vector<long> &now) {
    result.push_back(arguments);
    for (size_t i = 0; i < places.size(); ++i)
      result.back()[places[i]] = std::to_string(now[i]);
  };
  if (places.empty())
    return result;
  std::vector<long> slightlyLess, mixed, otherwise;
  for (size_t i = 0; i < places.size(); ++i) {
    long v = values[i], odd = 1 + 2 * long(i);
    long half = v / 2 / 2 * 2 + odd, more = v <= 4096 ? 2 * v + odd : half;
    slightlyLess.push_back(std::max(1L, (v - 1) / 2 * 2 - odd));
    mixed.push_back(i % 2 ? more : half);
    otherwise.push_back(i % 2 ? half : more);
  }
  add(slightlyLess);
  add(mixed);
  add(otherwise);
  // For programs that take only certain values of some argument (a power of two, say).
  if (places.size() > 1) {
    std::vector<long> first = values;
    first[0] = slightlyLess[0];
    add(first);
  }
  return result;
}

std::vector<std::string> optiml::smallSizes(std::vector<std::string> arguments) {
  int64_t small = 37, value;
  for (std::string &argument : arguments)
    if (!llvm::StringRef(argument).getAsInteger(10, value) && value > small)
      argument = std::to_string(small), small += 6;
  return arguments;
}

std::vector<std::string> optiml::equalSizes(std::vector<std::string> arguments, int64_t size) {
  constexpr int64_t leastSize = 8;
  int64_t value;
  for (std::string &argument : arguments)
    if (!llvm::StringRef(argument).getAsInteger(10, value) && value >= leastSize)
      argument = std::to_string(size);
  return arguments;
}

std::vector<std::vector<std::string>> optiml::cornerSizes(const std::vector<std::string> &arguments) {
  std::vector<std::vector<std::string>> result;
  for (const char *corner : {"1", "0"}) {
    std::vector<std::string> all = arguments;
    for (std::string &argument : all)
      if (int64_t value; !llvm::StringRef(argument).getAsInteger(10, value) && value > 1)
        argument = corner;
    result.push_back(all);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (all[i] != arguments[i]) {
        result.push_back(arguments);
        result.back()[i] = corner;
      }
  }
  return result;
}

std::vector<std::string> optiml::roundedSizes(std::vector<std::string> arguments, int64_t unit, int64_t beside) {
  constexpr int64_t leastSize = 4;
  int64_t value;
  for (std::string &argument : arguments)
    if (!llvm::StringRef(argument).getAsInteger(10, value) && value >= std::max(leastSize, unit / 2))
      argument = std::to_string((value + unit - 1) / unit * unit + beside);
  return arguments;
}

std::vector<int64_t> optiml::moduliOf(llvm::StringRef text) {
  constexpr int64_t largest = 64;
  constexpr size_t most = 6;
  std::vector<int64_t> moduli;
  for (size_t at = text.find('%'); at != llvm::StringRef::npos && moduli.size() < most; at = text.find('%', at + 1)) {
    int64_t value = 0;
    llvm::StringRef rest = text.drop_front(at + 1).ltrim(" (");
    if (!rest.consumeInteger(10, value) && value > 1 && value <= largest && !llvm::is_contained(moduli, value))
      moduli.push_back(value);
  }
  return moduli;
}

std::vector<int64_t> optiml::unitsOf(llvm::StringRef text) {
  constexpr int64_t warp = 32, largest = 1 << 14;
  constexpr size_t most = 12;
  std::vector<int64_t> units = {warp};
  for (size_t i = 0; i < text.size() && units.size() < most;) {
    const size_t begin = i;
    while (i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_' || text[i] == '.'))
      ++i;
    int64_t value;
    if (i == begin)
      ++i;
    else if (!text.slice(begin, i).getAsInteger(10, value) && value > warp && value <= largest &&
             !llvm::is_contained(units, value))
      units.push_back(value);
  }
  return units;
}

bool optiml::mayBeLaunched(llvm::StringRef text, const std::string &symbol) {
  const std::string plain = plainName(demangled(symbol));
  unsigned mentions = 0;
  for (size_t at = text.find(plain); at != llvm::StringRef::npos; at = text.find(plain, at + 1)) {
    auto isWord = [&](size_t i) { return i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_'); };
    mentions += !(at && isWord(at - 1)) && !isWord(at + plain.size());
  }
  return mentions > 1;
}
