//===- Coverage.cpp - which code of a program text ran ----------------------===//
#include "Coverage.h"
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

static llvm::StringRef lineOf(llvm::StringRef text, uint32_t number) {
  for (uint32_t i = 1; i < number && !text.empty(); ++i)
    text = text.split('\n').second;
  return text.split('\n').first.trim();
}

/// "x = 0;" of "if (x > 9) x = 0;", which new text has in a line of its own.
static llvm::StringRef statementOf(llvm::StringRef line) {
  for (;;) {
    line = line.trim(" \t{}");
    llvm::StringRef rest = line;
    rest.consume_front("else ");
    rest = rest.ltrim();
    if ((rest.consume_front("if") || rest.consume_front("for") || rest.consume_front("while")) &&
        rest.ltrim().starts_with("(")) {
      size_t depth = 0;
      const size_t end = rest.find_if([&](char c) {
        depth += c == '(';
        return c == ')' && --depth == 0;
      });
      rest = end == llvm::StringRef::npos ? "" : rest.drop_front(end + 1).ltrim();
    }
    if (rest == line || rest.trim(" \t{}").empty())
      return line;
    line = rest;
  }
}

/// "x = 0;" of "x[iy][ix] = 0;", where a thread has copies of a variable.
static std::string withoutCopies(llvm::StringRef line) {
  static const llvm::Regex copy("\\[(ix|iy|iz|lane)[0-9]*\\]");
  std::string text = line.str();
  for (llvm::SmallVector<llvm::StringRef, 2> found; copy.match(text, &found);) {
    const size_t at = size_t(found[0].data() - text.data()), length = found[0].size();
    text.erase(at, length);
  }
  return text;
}

/// What "return x;" gives, as a variable gets it where the function is read in place of its call ("result = x;").
static llvm::StringRef givenBy(llvm::StringRef line) {
  llvm::StringRef value = line;
  if (value.consume_front("return "))
    return value.ltrim();
  const size_t end = line.find_if_not([](char c) { return llvm::isAlnum(c) || c == '_'; });
  value = line.substr(end);
  return end && value.consume_front(" = ") ? value.ltrim() : line;
}

void Coverage::ignoreCopies(llvm::StringRef text, const Coverage &original, llvm::StringRef originalText) {
  auto described = [](llvm::StringRef of, const emu::MissedCode &m) {
    const std::string statement = withoutCopies(statementOf(lineOf(of, m.line)));
    return std::array<std::string, 3>{llvm::sys::path::filename(m.file).str(), givenBy(statement).str(), m.constants};
  };
  std::set<std::array<std::string, 3>> there;
  for (const auto &[code, m] : original.never)
    there.insert(described(originalText, m));
  for (auto it = never.begin(); it != never.end();)
    it = there.count(described(text, it->second)) ? never.erase(it) : std::next(it);
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
  llvm::StringRef code = own ? lineOf(text, line) : llvm::StringRef();
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
