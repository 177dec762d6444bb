//===- Coverage.cpp - which code of a program text ran ----------------------===//
#include "Coverage.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include <algorithm>

using namespace optiml;
using emu::MissedCode;

bool Coverage::addRun(const std::set<std::string> &kernels, const std::vector<MissedCode> &missedNow) {
  std::map<uint32_t, MissedCode> now;
  for (const MissedCode &m : missedNow)
    now[m.code] = m;
  bool gained = false;
  for (auto it = never.begin(); it != never.end();) {
    bool runs = (it->second.kernel.empty() || kernels.count(it->second.kernel)) && !now.count(it->first);
    gained |= runs;
    it = runs ? never.erase(it) : std::next(it);
  }
  for (const auto &[code, m] : now) // code that no kernel has to itself counts from the first run on
    if (m.kernel.empty() ? ran.empty() : !ran.count(m.kernel))
      never.emplace(code, m);
  for (const std::string &kernel : kernels)
    gained |= ran.insert(kernel).second;
  return gained;
}

llvm::Expected<bool> Coverage::addFile(const std::string &path) {
  llvm::Expected<std::string> text = readFile(path);
  if (!text) {
    llvm::consumeError(text.takeError()); // it launched nothing, or was stopped
    return false;
  }
  std::set<std::string> kernels;
  std::vector<MissedCode> missedNow;
  for (llvm::StringRef line : llvm::split(*text, '\n')) {
    llvm::SmallVector<llvm::StringRef, 8> words;
    line.split(words, '\t');
    unsigned long long number = 0;
    if (words.size() == 4 && words[0] == "kernel" && !words[3].getAsInteger(10, number)) {
      hashes[words[1].str()] = number;
      if (words[2] == "1")
        kernels.insert(words[1].str());
      continue;
    }
    if (words.size() == 2 && words[0] == "function" && !words[1].getAsInteger(10, number)) {
      functionHashes.insert(number);
      continue;
    }
    MissedCode m;
    if (words.size() == 8 && !words[7].getAsInteger(10, m.functionHash) && words[0] == "missed" &&
        !words[1].getAsInteger(10, m.code) && !words[5].getAsInteger(10, m.line)) {
      m.kernel = words[2].str();
      m.function = words[3].str();
      m.file = words[4].str();
      m.constants = words[6].str();
      missedNow.push_back(std::move(m));
    } else if (!line.empty()) {
      return makeError("{0}: '{1}' says nothing about coverage", path, line);
    }
  }
  return addRun(kernels, missedNow);
}

std::vector<MissedCode> Coverage::missed() const {
  std::vector<MissedCode> result;
  for (const auto &[code, m] : never)
    result.push_back(m);
  llvm::stable_sort(result, [](const MissedCode &a, const MissedCode &b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  });
  return result;
}

std::vector<std::string> Coverage::idleKernels() const {
  std::vector<std::string> result;
  for (const auto &[symbol, hash] : hashes)
    if (!ran.count(symbol))
      result.push_back(symbol);
  return result;
}

void Coverage::ignore(const std::string &symbol) {
  hashes.erase(symbol);
  for (auto it = never.begin(); it != never.end();)
    it = it->second.kernel == symbol ? never.erase(it) : std::next(it);
}

void Coverage::ignoreFunctions(const std::set<uint64_t> &hashes) {
  for (auto it = never.begin(); it != never.end();)
    it = hashes.count(it->second.functionHash) ? never.erase(it) : std::next(it);
}

static llvm::StringRef lineOf(llvm::StringRef text, uint32_t number) {
  for (uint32_t i = 1; i < number && !text.empty(); ++i)
    text = text.split('\n').second;
  return text.split('\n').first.trim();
}

void Coverage::ignoreCopies(llvm::StringRef text, const Coverage &original, llvm::StringRef originalText) {
  std::set<std::pair<std::string, std::string>> there;
  for (const auto &[code, m] : original.never)
    there.emplace(lineOf(originalText, m.line).str(), m.constants);
  for (auto it = never.begin(); it != never.end();)
    it = there.count({lineOf(text, it->second.line).str(), it->second.constants}) ? never.erase(it) : std::next(it);
}

std::string optiml::placesOf(const std::vector<MissedCode> &missed, llvm::StringRef path, llvm::StringRef text) {
  constexpr size_t most = 6, longest = 60;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  text.split(lines, '\n');
  std::vector<std::string> places;
  for (const MissedCode &m : missed) {
    llvm::StringRef file = llvm::sys::path::filename(m.file);
    bool own = file == llvm::sys::path::filename(path);
    std::string place = (own ? "" : file.str() + ":") + "line " + std::to_string(m.line) + " of " + m.function;
    if (own && m.line > 0 && m.line <= lines.size())
      place += " ('" + lines[m.line - 1].trim().take_front(longest).str() + "')";
    if (!llvm::is_contained(places, place))
      places.push_back(place);
  }
  std::string list = llvm::join(llvm::ArrayRef(places).take_front(most), ", ");
  return places.size() > most ? list + " and " + std::to_string(places.size() - most) + " more" : list;
}
