//===- Coverage.cpp - which code of a program text ran ----------------------===//
#include "Coverage.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
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

void Coverage::add(const Coverage &other) {
  std::vector<MissedCode> missedThere;
  for (const auto &[code, missed] : other.never)
    missedThere.push_back(missed);
  addRun(other.ran, missedThere);
}

namespace {
/// The words of one line, taken from the front.
class Line {
public:
  explicit Line(llvm::StringRef text) { text.split(words, '\t'); }
  std::string text() { return at < words.size() ? words[at++].str() : (good = false, ""); }
  template <typename T> void number(T &into) { good &= at < words.size() && !words[at++].getAsInteger(10, into); }
  void flag(bool &into) {
    unsigned value = 0;
    number(value);
    into = value != 0;
  }
  /// Whether all words were taken and understood.
  bool done() const { return good && at == words.size(); }

private:
  llvm::SmallVector<llvm::StringRef, 20> words;
  size_t at = 0;
  bool good = true;
};
} // namespace

/// What follows "kernel".
static void readKernel(Line &line, ProgramCoverage &into) {
  std::string symbol = line.text();
  bool ran;
  line.flag(ran);
  line.number(into.kernels[symbol]);
  if (ran)
    into.ran.insert(symbol);
  bool testsNaN, dataDecides;
  line.flag(testsNaN);
  line.flag(dataDecides);
  into.testsNaN |= ran && testsNaN;
  into.dataDecides |= ran && dataDecides;
}

static bool readLine(llvm::StringRef text, ProgramCoverage &into) {
  Line line(text);
  std::string what = line.text();
  if (what == "kernel") {
    readKernel(line, into);
  } else if (what == "ran") {
    std::string list = line.text();
    for (llvm::StringRef part : llvm::split(list, ','))
      if (uint32_t code; !part.consumeInteger(10, code) && part.consume_front(":"))
        part.getAsInteger(10, into.covered[code]);
  } else if (what == "pointee") {
    into.pointees.insert(line.text());
  } else if (what == "launches") {
    line.number(into.launches);
  } else if (what == "function") {
    uint64_t hash = 0;
    line.number(hash);
    into.functions.insert(hash);
  } else if (what == "missed") {
    MissedCode m;
    line.number(m.code);
    m.kernel = line.text();
    m.function = line.text();
    m.file = line.text();
    line.number(m.line);
    m.constants = line.text();
    line.number(m.functionHash);
    line.number(m.place);
    into.missed.push_back(std::move(m));
  } else if (what == "constants") {
    std::string list = line.text();
    for (llvm::StringRef part : llvm::split(list, ','))
      if (int64_t value; !part.getAsInteger(10, value))
        into.constants.push_back(value);
  } else if (what == "condition") {
    uint32_t number = 0;
    line.number(number);
    ConditionState &c = into.conditions[number];
    line.flag(c.isHost);
    c.function = line.text();
    c.file = line.text();
    line.number(c.line);
    line.flag(c.isFloat);
    line.number(c.functionHash);
    line.number(c.place);
    c.limitedAxis = c.file.empty() ? c.line : 0;
    for (ConditionSide &side : c.sides) {
      line.number(side.least);
      line.flag(side.leads);
      line.number(side.nearness);
      line.number(side.left);
      line.number(side.right);
    }
    if (c.isHost)
      into.functions.insert(c.functionHash);
  } else if (what == "site") {
    uint64_t place = 0;
    line.number(place);
    HostSite &site = into.sites[place]; // of all instances of a template
    site.function = line.text();
    site.file = line.text();
    line.number(site.line);
    line.number(site.functionHash);
    bool ran;
    line.flag(ran);
    site.ran |= ran;
    std::string kernels = line.text();
    for (llvm::StringRef kernel : llvm::split(kernels, ','))
      if (!kernel.empty())
        site.work.insert(kernel.str());
    into.functions.insert(site.functionHash);
  } else {
    return text.empty();
  }
  return line.done();
}

llvm::Expected<ProgramCoverage> optiml::readCoverage(const std::string &path) {
  ProgramCoverage result;
  if (!llvm::sys::fs::exists(path))
    return result;
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  // A program that is stopped while it writes leaves half a line.
  llvm::StringRef whole = llvm::StringRef(*text).take_front(text->rfind('\n') + 1);
  for (llvm::StringRef line : llvm::split(whole, '\n'))
    if (!readLine(line, result))
      return makeError("{0}: '{1}' says nothing about coverage", path, line);
  return result;
}

bool Coverage::add(const ProgramCoverage &run) {
  for (const auto &[symbol, hash] : run.kernels)
    hashes[symbol] = hash;
  functionHashes.insert(run.functions.begin(), run.functions.end());
  pointeesOfKernels.insert(run.pointees.begin(), run.pointees.end());
  bool gained = addRun(run.ran, run.missed);
  for (auto [code, place] : run.covered)
    places.insert(place);
  for (const auto &[place, site] : run.sites)
    if (site.ran) {
      gained |= places.insert(place).second;
      sites.erase(place);
    } else if (!site.work.empty() && !places.count(place)) {
      sites.emplace(place, site);
    }
  return gained;
}

std::vector<HostSite> Coverage::missedSites() const {
  std::vector<HostSite> result;
  for (const auto &[place, site] : sites)
    result.push_back(site);
  llvm::stable_sort(
      result, [](const HostSite &a, const HostSite &b) { return std::tie(a.file, a.line) < std::tie(b.file, b.line); });
  return result;
}

std::vector<MissedCode> Coverage::missed() const {
  std::vector<MissedCode> result;
  for (const auto &[code, m] : never)
    if (!m.place || !places.count(m.place))
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
  for (auto it = sites.begin(); it != sites.end();)
    it = it->second.work.erase(symbol) && it->second.work.empty() ? sites.erase(it) : std::next(it);
  for (auto it = never.begin(); it != never.end();)
    it = it->second.kernel == symbol ? never.erase(it) : std::next(it);
}

void Coverage::ignoreSitesOutside(const std::set<std::string> &functions) {
  std::erase_if(sites, [&](const auto &entry) {
    const std::string &name = entry.second.function;
    return !functions.count(name.substr(0, name.find('<')));
  });
}

void Coverage::ignoreFunctions(const std::set<uint64_t> &hashes) {
  for (auto it = never.begin(); it != never.end();)
    it = hashes.count(it->second.functionHash) ? never.erase(it) : std::next(it);
  for (auto it = sites.begin(); it != sites.end();)
    it = hashes.count(it->second.functionHash) ? sites.erase(it) : std::next(it);
}

/// Of a function of the text, or of a template's instantiation.
static llvm::StringRef lineOf(llvm::StringRef text, llvm::StringRef file, uint32_t number, llvm::StringRef function) {
  return lineAt(text, file, number, unqualified(function).take_until([](char c) { return c == '<' || c == '('; }));
}
static llvm::StringRef lineOf(llvm::StringRef text, const emu::MissedCode &m, uint32_t above = 0) {
  return m.line > above ? lineOf(text, m.file, m.line - above, m.function) : "";
}

/// Of a line, as variants have it: what it does, and the condition that stands before it.
struct Statement {
  std::string text, condition;
};

/// "if (x > 9) x = 0;" is a statement with a condition. Otherwise the condition stands in the line `above`, or is "".
static Statement statementOf(llvm::StringRef line, llvm::StringRef above) {
  auto conditionOf = [](llvm::StringRef &rest) -> llvm::StringRef {
    llvm::StringRef text = rest.ltrim("} \t");
    text.consume_front("else ");
    if (!text.starts_with("if ("))
      return "";
    size_t depth = 0;
    const size_t end = text.find_if([&](char c) {
      depth += c == '(';
      return c == ')' && --depth == 0;
    });
    if (end == llvm::StringRef::npos)
      return "";
    rest = text.drop_front(end + 1);
    return text.slice(3, end + 1);
  };
  llvm::StringRef rest = line;
  const llvm::StringRef own = conditionOf(rest);
  if (own.empty())
    return {line.str(), conditionOf(above).str()};
  if (rest.trim(" \t{}").empty())
    return {line.str(), ""};
  return {rest.trim(" \t{}").str(), own.str()};
}

/// As it was before a thread got copies of its variables, and these other names: "x" of "x1[iy][ix]".
static std::string plainOf(llvm::StringRef code) {
  static const llvm::Regex copy("\\[(ix|iy|iz|lane)[0-9]*\\]"), number("([A-Za-z_])[0-9]+");
  std::string text;
  for (char c : code)
    if (c != ' ')
      text += c;
  for (const llvm::Regex *what : {&copy, &number})
    for (llvm::SmallVector<llvm::StringRef, 2> found; what->match(text, &found);) {
      const size_t at = size_t(found[0].data() - text.data()), kept = what == &number ? 1 : 0;
      text.erase(at + kept, found[0].size() - kept);
    }
  return text;
}

/// What "result = x;" gives, where a function that returns x is read in place of its call.
static llvm::StringRef givenBy(llvm::StringRef line) {
  const size_t end = line.find_if_not([](char c) { return llvm::isAlnum(c) || c == '_'; });
  llvm::StringRef value = line.substr(end);
  return end && end != llvm::StringRef::npos && value.consume_front(" = ") ? value.ltrim() : "";
}

void Coverage::ignoreCopies(llvm::StringRef text, const Coverage &original, llvm::StringRef originalText) {
  using Key = std::array<std::string, 4>; // file, constants, condition, what it does
  auto keyOf = [](const emu::MissedCode &m, llvm::StringRef condition, llvm::StringRef does) {
    return Key{llvm::sys::path::filename(m.file).str(), m.constants, plainOf(condition), does.str()};
  };
  std::set<Key> there;
  for (const auto &[code, m] : original.never) {
    const llvm::StringRef line = lineOf(originalText, m);
    const Statement s = statementOf(line, lineOf(originalText, m, 1));
    there.insert(keyOf(m, "", line));
    if (!s.condition.empty())
      there.insert(keyOf(m, s.condition, plainOf(s.text)));
    if (llvm::StringRef returned = line; returned.consume_front("return "))
      there.insert(keyOf(m, "", ("=" + returned.ltrim()).str()));
  }
  for (auto it = never.begin(); it != never.end();) {
    const emu::MissedCode &m = it->second;
    const llvm::StringRef line = lineOf(text, m);
    const Statement s = statementOf(line, lineOf(text, m, 1));
    const llvm::StringRef value = givenBy(line);
    const bool isCopy = there.count(keyOf(m, "", line)) ||
                        (!value.empty() && there.count(keyOf(m, "", ("=" + value).str()))) ||
                        (!s.condition.empty() && there.count(keyOf(m, s.condition, plainOf(s.text))));
    it = isCopy ? never.erase(it) : std::next(it);
  }
}

/// "a, b and 3 more", each once.
static std::string listOf(const std::vector<std::string> &all) {
  constexpr size_t most = 6;
  std::vector<std::string> places;
  for (const std::string &place : all)
    if (!llvm::is_contained(places, place))
      places.push_back(place);
  std::string list = llvm::join(llvm::ArrayRef(places).take_front(most), ", ");
  return places.size() > most ? list + " and " + std::to_string(places.size() - most) + " more" : list;
}

static std::string placeOf(llvm::StringRef file, uint32_t line, llvm::StringRef function, llvm::StringRef path,
                           llvm::StringRef text) {
  constexpr size_t longest = 60;
  file = llvm::sys::path::filename(file);
  bool own = file == llvm::sys::path::filename(path);
  std::string place = (own ? "" : file.str() + ":") + "line " + std::to_string(line) + (" of " + function).str();
  llvm::StringRef code = own ? lineOf(text, path, line, function) : llvm::StringRef();
  return code.empty() ? place : place + (" ('" + code.take_front(longest) + "')").str();
}

std::string optiml::placesOf(const std::vector<MissedCode> &missed, llvm::StringRef path, llvm::StringRef text) {
  std::vector<std::string> places;
  for (const MissedCode &m : missed)
    places.push_back(placeOf(m.file, m.line, m.function, path, text));
  return listOf(places);
}

std::string optiml::placesOf(const std::vector<HostSite> &sites, llvm::StringRef path, llvm::StringRef text) {
  std::vector<std::string> places;
  for (const HostSite &site : sites)
    places.push_back(placeOf(site.file, site.line, site.function, path, text));
  return listOf(places);
}
