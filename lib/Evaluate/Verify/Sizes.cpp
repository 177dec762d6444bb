//===- Sizes.cpp - arguments that lead to code ------------------------------===//
#include "Sizes.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace optiml;

// A program with larger ones runs for minutes in the emulator.
static constexpr int64_t largest = 1 << 22;

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

/// Every integer that the text is written with, and powers of two written as "1 << 20".
static llvm::SmallVector<int64_t> integersIn(llvm::StringRef text) {
  llvm::SetVector<int64_t> found;
  bool inWord = false;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (inWord || !llvm::isDigit(c)) {
      inWord = llvm::isAlnum(c) || c == '_' || (inWord && c == '.');
      ++i;
      continue;
    }
    llvm::StringRef rest = text.substr(i);
    uint64_t value = 0;
    bool read = !rest.consumeInteger(0, value);
    if (!read)
      rest = rest.drop_while([](char d) { return llvm::isAlnum(d) || d == '.'; });
    bool isFloat = rest.starts_with(".") || rest.starts_with_insensitive("e");
    rest = rest.drop_while([](char d) { return llvm::StringRef("uUlL").contains(d); });
    llvm::StringRef shift = rest.ltrim();
    if (uint64_t by; read && shift.consume_front("<<") && !shift.ltrim().empty() && llvm::isDigit(shift.ltrim()[0])) {
      shift = shift.ltrim();
      if (!shift.consumeInteger(0, by) && by < 40)
        value <<= by;
    }
    if (read && !isFloat && value > 0 && value <= uint64_t(largest))
      found.insert(int64_t(value));
    i = text.size() - rest.size();
    inWord = isFloat;
  }
  return llvm::to_vector(found);
}

static int64_t multipleFrom(int64_t least, int64_t of) { return (least + of - 1) / of * of; }

/// What an argument may become to pass conditions that are made with these integers.
static llvm::SmallVector<int64_t> valuesFor(llvm::ArrayRef<int64_t> constants, int64_t given) {
  llvm::SetVector<int64_t> values;
  auto add = [&](int64_t v) {
    if (v >= 0 && v <= largest)
      values.insert(v);
  };
  for (int64_t c : constants)
    for (int64_t v : {c, c + 1, c - 1, 2 * c, 2 * c + 1})
      add(v);
  for (int64_t c : constants)
    if (c > 1)
      for (int64_t off : {0, 1, -1})
        add(multipleFrom(given, c) + off);
  for (int64_t a : constants)
    for (int64_t b : constants)
      if (a > 1 && a < b) {
        add(multipleFrom(b, a));
        add(multipleFrom(b, a) + a);
        add(multipleFrom(b, a) + 1);
        add(a * b);
        add(a * b + 1);
      }
  return llvm::to_vector(values);
}

std::vector<std::vector<std::string>> optiml::argumentsThatMayReach(llvm::ArrayRef<emu::MissedCode> missed,
                                                                    llvm::StringRef text,
                                                                    const std::vector<std::string> &arguments) {
  std::vector<std::pair<size_t, int64_t>> places; // of integers among the arguments
  for (size_t i = 0; i < arguments.size(); ++i)
    if (int64_t v; !llvm::StringRef(arguments[i]).getAsInteger(10, v) && v >= 0)
      places.emplace_back(i, v);
  llvm::SetVector<int64_t> constants, general;
  constexpr size_t mostConstants = 6;
  for (const emu::MissedCode &m : missed) {
    llvm::SmallVector<llvm::StringRef, 16> words;
    llvm::StringRef(m.constants).split(words, ',', -1, false);
    for (llvm::StringRef word : llvm::ArrayRef(words).take_front(mostConstants))
      if (int64_t v; !word.getAsInteger(10, v) && v > 0 && v <= largest)
        constants.insert(v);
  }
  for (int64_t v : {1, 0, 2, 3, 5, 17, 33, 65, 129, 257, 1025})
    general.insert(v);
  for (int64_t v : integersIn(text))
    if (!constants.count(v))
      general.insert(v);
  std::vector<std::vector<std::string>> result;
  auto vary = [&](const std::vector<std::string> &base, llvm::ArrayRef<std::pair<size_t, int64_t>> places,
                  llvm::ArrayRef<int64_t> from) {
    llvm::SetVector<int64_t> values;
    for (auto [place, given] : places)
      values.insert_range(valuesFor(from, given));
    auto with = [&](int64_t value, llvm::ArrayRef<std::pair<size_t, int64_t>> where) {
      result.push_back(base);
      for (auto [place, given] : where)
        result.back()[place] = std::to_string(value);
    };
    for (int64_t value : values) {
      if (places.size() > 1) // two sizes may have to be large, or equal, together
        with(value, places);
      for (const auto &place : places)
        with(value, place);
    }
  };
  auto propose = [&](llvm::ArrayRef<int64_t> from) {
    vary(arguments, places, from);
    // A program that has sizes of its own, and takes others.
    constexpr int64_t guessed = 100;
    std::vector<std::pair<size_t, int64_t>> guesses;
    std::vector<std::string> line;
    if (arguments.empty() && text.contains("argv"))
      for (size_t i = 0; i < 3; ++i) {
        line.push_back(std::to_string(guessed));
        guesses.emplace_back(i, guessed);
        vary(line, guesses, from);
      }
  };
  propose(constants.getArrayRef());
  propose(general.getArrayRef().take_front(16));
  return result;
}

bool optiml::mayBeLaunched(llvm::StringRef text, const std::string &symbol) {
  std::string name = demangled(symbol);
  name = name.substr(0, name.find('('));
  llvm::StringRef plain = unqualified(name.starts_with("void ") ? llvm::StringRef(name).drop_front(5) : name);
  plain = plain.split('<').first;
  unsigned mentions = 0;
  for (size_t at = text.find(plain); at != llvm::StringRef::npos; at = text.find(plain, at + 1)) {
    auto isWord = [&](size_t i) { return i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_'); };
    mentions += !(at && isWord(at - 1)) && !isWord(at + plain.size());
  }
  return mentions > 1;
}
