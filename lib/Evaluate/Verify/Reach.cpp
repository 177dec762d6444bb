//===- Reach.cpp - arguments and data that lead to code ----------------------===//
//
// What a comparison tries where code of the changed program has not run: other data, arguments that the explorer finds,
// and buffers that begin elsewhere.
//
//===----------------------------------------------------------------------===//
#include "Comparison.h"
#include "Sizes.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace optiml;

void Comparison::leaveOutUnchanged() {
  covered.ignoreFunctions(coveredByOriginal.functions());
  covered.ignoreCopies(changedText, coveredByOriginal, originalText);
  for (const auto &[symbol, hash] : std::map(covered.kernels()))
    if (auto it = coveredByOriginal.kernels().find(symbol);
        it != coveredByOriginal.kernels().end() && it->second == hash)
      covered.ignore(symbol);
  for (const std::string &symbol : covered.idleKernels())
    if (!mayBeLaunched(changedText, symbol) ||
        (!options.reached.empty() && !options.reached.count(plainName(demangled(symbol)))))
      covered.ignore(symbol);
  if (!options.reached.empty())
    covered.ignoreSitesOutside(options.reached);
}

llvm::Expected<bool> Comparison::tryOtherData(const Deadline &deadline) {
  for (unsigned seed = 1; seed <= 3 && options.verify.freshInputs; ++seed)
    for (FloatRange floats : {FloatRange::Masked, FloatRange::Same}) {
      leaveOutUnchanged();
      if (covered.missed().empty() || deadline.passed())
        return true;
      ProgramInput input = otherData(options.arguments, floats);
      input.fresh += 100 + seed;
      std::string skipped;
      llvm::Expected<bool> good = compareOn(input, skipped);
      if (!good || !*good)
        return good;
    }
  return true;
}

llvm::Expected<bool> Comparison::compareWith(const Arguments &arguments, double alone, double limit) {
  constexpr double mostForRaces = 0.3;
  ProgramInput input;
  input.quick = alone > mostForRaces; // smaller sizes show races
  input.seconds = limit;
  input.arguments = arguments;
  input.name = "the run " + joined(arguments);
  input.otherMemory = compared.size() % 2; // what nothing has written must not matter
  std::string skipped;
  auto begin = std::chrono::steady_clock::now();
  llvm::Expected<bool> good = compareOn(input, skipped);
  if (!skipped.empty())
    leaveOut(input, skipped);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  constexpr double isLong = 1;
  if (!good || !*good || !skipped.empty() || !options.verify.freshInputs || seconds > isLong * runner.slowdown())
    return good;
  constexpr FloatRange kinds[] = {FloatRange::Wide,     FloatRange::Masked, FloatRange::Few,
                                  FloatRange::Negative, FloatRange::Same,   FloatRange::Extreme};
  ProgramInput other = otherData(arguments, kinds[dataKind++ % std::size(kinds)]);
  other.fresh += 200 + dataKind;
  other.quick = input.quick;
  other.otherMemory = !input.otherMemory;
  return compareOn(other, skipped);
}

llvm::Expected<bool> Comparison::tryOtherAlignment(const std::string &program, llvm::ArrayRef<Arguments> lines,
                                                   const Deadline &deadline) {
  std::vector<std::string> shifts = {"4", "8", "2", "1"};
  for (unsigned allocation = 1; allocation <= 6; ++allocation)
    for (const char *bytes : {"4", "2", "1"})
      shifts.push_back(bytes + ("@" + std::to_string(allocation)));
  for (const std::string &shift : shifts)
    for (const Arguments &arguments : lines) {
      leaveOutUnchanged();
      if (nothingMissed() || deadline.passed())
        return true;
      llvm::Expected<ProbeResult> run = runner.probe(program, arguments, {}, shift);
      if (!run)
        return run.takeError();
      if (Coverage probe = covered; !run->coverage || !probe.add(*run->coverage))
        continue;
      ProgramInput input;
      input.arguments = arguments;
      input.shift = shift;
      input.name = "the run " + joined(arguments) + ", with buffers that begin elsewhere (" + shift + ")";
      std::string skipped;
      llvm::Expected<bool> good = compareOn(input, skipped);
      if (!good || !*good)
        return good;
    }
  return true;
}

llvm::Expected<Arguments> Comparison::completed(const std::string &program) {
  constexpr size_t mostArguments = 16;
  const Deadline deadline(options.coverageSeconds / 8 * runner.slowdown(), options.verify.cancel);
  Arguments result = options.arguments;
  llvm::Expected<std::string> wanted = runner.signature(program, result);
  if (!wanted)
    return wanted.takeError();
  while (!wanted->empty() && result.size() < mostArguments && !deadline.passed()) {
    std::optional<int64_t> same;
    bool matters = false;
    for (int64_t value : constants) {
      Arguments longer = result;
      longer.push_back(std::to_string(value));
      llvm::Expected<std::string> is = runner.signature(program, longer);
      if (!is)
        return is.takeError();
      matters |= *is != *wanted;
      if (*is == *wanted && !same)
        same = value;
      if (same && matters)
        break;
    }
    if (!same || !matters)
      break;
    result.push_back(std::to_string(*same));
  }
  return result;
}

llvm::Expected<bool> Comparison::isQuickInOriginal(const Arguments &arguments) {
  ArgumentExplorer::ProbeOptions how;
  how.seconds = 1; // a program that hangs stands out against it
  llvm::Expected<ProbeResult> run = runner.probe(shadowProgram, arguments, how);
  if (!run)
    return run.takeError();
  return run->coverage.has_value();
}

/// The same, and with all integers but one as small as can be, which the original runs sooner.
static std::vector<Arguments> withLess(const Arguments &arguments) {
  std::vector<Arguments> result = {arguments};
  for (size_t kept = 0; kept < arguments.size(); ++kept) {
    Arguments less = arguments;
    for (size_t i = 0; i < less.size(); ++i)
      if (std::optional<int64_t> value = integerIn(less[i]); i != kept && value && *value > 1)
        less[i] = "1";
    result.push_back(std::move(less));
  }
  return result;
}

/// How large a program may be with these.
static double sizeOf(const Arguments &arguments) {
  double product = 1;
  for (const std::string &argument : arguments)
    product *= double(std::max<int64_t>(integerIn(argument).value_or(1), 1));
  return product;
}

llvm::Expected<bool> Comparison::trySuspects(const Deadline &deadline) {
  constexpr double largest = 1 << 16; // a version may take long for more
  std::vector<std::pair<Arguments, bool>> found(suspects.begin(), suspects.end());
  suspects.clear();
  llvm::stable_sort(found, [](const auto &a, const auto &b) { return sizeOf(a.first) < sizeOf(b.first); });
  std::set<Arguments> tried;
  for (const auto &[arguments, timedOut] : found) {
    for (const Arguments &line : timedOut ? withLess(arguments) : std::vector<Arguments>(1, arguments)) {
      if (deadline.passed())
        return true;
      if (compared.count(line) || (timedOut && sizeOf(line) > largest) || !tried.insert(line).second)
        continue;
      llvm::Expected<bool> isQuick = isQuickInOriginal(line);
      if (!isQuick)
        return isQuick.takeError();
      if (!*isQuick)
        continue;
      llvm::Expected<bool> good = compareWith(line, hangSeconds, hangSeconds);
      if (!good || !*good)
        return good;
      break;
    }
  }
  return true;
}

llvm::Expected<bool> Comparison::compareEach(llvm::ArrayRef<std::pair<Arguments, double>> lines,
                                             const Deadline &deadline) {
  // The original in double precision may take a hundred times as long as a probe.
  const double limit = isPatient ? 0 : std::max(1.0, options.coverageSeconds / 3);
  for (const auto &[arguments, alone] : lines) {
    if (deadline.passed())
      break;
    if (compared.count(arguments))
      continue;
    llvm::Expected<bool> good = compareWith(arguments, alone, limit);
    if (!good || !*good)
      return good;
  }
  return true;
}

llvm::Expected<bool> Comparison::tryNeighbours(const ArgumentExplorer &explorer, const Deadline &deadline) {
  constexpr size_t mostLines = 16;
  const std::vector<Arguments> lines = explorer.worthComparing({}, mostLines);
  std::vector<std::pair<Arguments, double>> neighbours;
  for (int64_t step : {1, -1})
    for (const Arguments &arguments : lines)
      for (size_t i = 0; i < arguments.size(); ++i) {
        std::optional<int64_t> value = integerIn(arguments[i]);
        if (!value || *value + step < 0)
          continue;
        neighbours.emplace_back(arguments, explorer.secondsOf(arguments));
        neighbours.back().first[i] = std::to_string(*value + step);
      }
  return compareEach(neighbours, deadline);
}

llvm::Expected<bool> Comparison::tryNextMultiples(const ArgumentExplorer &explorer, const Deadline &deadline) {
  constexpr size_t mostLines = 8;
  std::vector<std::pair<Arguments, double>> next;
  for (const Arguments &arguments : explorer.worthComparing({}, mostLines))
    for (size_t i = 0; i < arguments.size(); ++i)
      for (int64_t modulus : moduliOf(changedText)) {
        std::optional<int64_t> value = integerIn(arguments[i]);
        if (!value || *value < modulus)
          continue;
        next.emplace_back(arguments, explorer.secondsOf(arguments));
        next.back().first[i] = std::to_string((*value / modulus + 1) * modulus);
      }
  return compareEach(next, deadline);
}

llvm::Expected<bool> Comparison::tryMultiples(const ArgumentExplorer &explorer, const Deadline &deadline) {
  constexpr size_t mostLines = 12;
  const std::vector<Arguments> lines = explorer.worthComparing({}, mostLines);
  std::vector<std::pair<Arguments, double>> multiples;
  for (int64_t unit : unitsOf(changedText))
    for (int64_t beside : {0, -1})
      for (const Arguments &arguments : lines)
        if (Arguments rounded = roundedSizes(arguments, unit, beside); rounded != arguments)
          multiples.emplace_back(std::move(rounded), explorer.secondsOf(arguments));
  return compareEach(multiples, deadline);
}

llvm::Expected<bool> Comparison::compareLines(ArgumentExplorer &explorer, const std::vector<Arguments> &lines,
                                              const Arguments &whole, const Deadline &time) {
  std::vector<std::pair<Arguments, double>> all;
  for (const Arguments &arguments : lines) {
    if (time.passed())
      break;
    llvm::Expected<Arguments> like = explorer.alike(arguments, whole);
    if (!like)
      return like.takeError();
    if (*like != arguments)
      all.emplace_back(*like, explorer.secondsOf(*like));
  }
  for (const Arguments &arguments : lines)
    all.emplace_back(arguments, explorer.secondsOf(arguments));
  return compareEach(all, time);
}

llvm::Expected<bool> Comparison::tryOtherArguments(const std::string &program, const std::set<uint64_t> &known,
                                                   const Deadline &deadline) {
  constexpr size_t mostCompared = 48;
  ArgumentExplorer explorer(
      [&](const Arguments &arguments, const ArgumentExplorer::ProbeOptions &how) {
        llvm::Expected<ProbeResult> run = runner.probe(program, arguments, how);
        if (run && !run->coverage && !how.hostOnly)
          suspects.try_emplace(arguments, run->timedOut);
        return run;
      },
      known);
  llvm::Expected<Arguments> whole = completed(program);
  if (!whole)
    return whole.takeError();
  for (const Arguments &arguments : {*whole, options.arguments})
    if (llvm::Error error = explorer.start(arguments))
      return std::move(error);
  std::vector<Arguments> begin;
  if (whole->empty() && llvm::StringRef(changedText).contains("argv"))
    for (size_t number : {1, 2, 3}) // a program that has sizes of its own, and takes others
      begin.push_back(Arguments(number, "100"));
  begin.insert(begin.end(), compared.begin(), compared.end());
  begin.push_back(smallSizes(*whole)); // quick runs
  for (int64_t size : {0, 1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 65, 128, 129, 256, 257})
    begin.push_back(equalSizes(*whole, size));
  constexpr double quick = 0.3;
  for (const Arguments &arguments : begin)
    if (llvm::Error error = explorer.start(arguments, quick))
      return std::move(error);
  // Quickly first, for edges too; then with patience where something has not run that must have.
  const double budget = options.coverageSeconds * runner.slowdown();
  const double quickSeconds = budget / 36, compareSeconds = budget / 18;
  for (bool thorough : {false, true}) {
    leaveOutUnchanged();
    isPatient = thorough;
    if (deadline.passed() || (thorough && nothingMissed()))
      break;
    const double search = thorough ? deadline.remaining() / 2 : std::min(quickSeconds, deadline.remaining());
    if (llvm::Error error = explorer.explore(Deadline(search, deadline.flag()), thorough))
      return std::move(error);
    if (!thorough)
      if (llvm::Error error = explorer.sweep(Deadline(std::min(quickSeconds, deadline.remaining()), deadline.flag())))
        return std::move(error);
    llvm::Expected<bool> good = trySuspects(Deadline(std::min(compareSeconds, deadline.remaining()), deadline.flag()));
    if (!good || !*good)
      return good;
    const Deadline time(thorough ? deadline.remaining() : std::min(compareSeconds, deadline.remaining()),
                        deadline.flag());
    std::vector<std::pair<Arguments, double>> corners;
    if (!thorough)
      for (const Arguments &arguments : cornerSizes(*whole))
        corners.emplace_back(arguments, 0);
    good = compareEach(corners, time);
    if (!good || !*good)
      return good;
    Features seen;
    for (const Arguments &arguments : compared)
      seen.merge(explorer.featuresOf(arguments));
    good = compareLines(explorer, explorer.worthComparing(seen, mostCompared), *whole, time);
    if (!good || !*good)
      return good;
  }
  isPatient = false;
  llvm::Expected<bool> besides =
      tryNeighbours(explorer, Deadline(std::min(quickSeconds, deadline.remaining()), deadline.flag()));
  if (!besides || !*besides)
    return besides;
  besides = tryNextMultiples(explorer, Deadline(std::min(quickSeconds, deadline.remaining()), deadline.flag()));
  if (!besides || !*besides)
    return besides;
  besides = tryMultiples(explorer, Deadline(std::min(quickSeconds, deadline.remaining()), deadline.flag()));
  if (!besides || !*besides)
    return besides;
  return tryOtherAlignment(program, explorer.worthComparing({}, 8), deadline);
}

llvm::Expected<bool> Comparison::reachTheRest() {
  // After a finding only others that are found soon are wanted.
  const double seconds = report.findings.empty() ? options.coverageSeconds : options.coverageSeconds / 9;
  const Deadline deadline(seconds * runner.slowdown(), options.verify.cancel);
  llvm::Expected<bool> good = tryOtherData(deadline); // it costs no other size
  if (!good || !*good)
    return good;
  leaveOutUnchanged();
  std::string probe = runner.file("probe");
  const uint32_t mode = emu::ModePlain | emu::ModeCoverage | emu::ModeConditions;
  if (llvm::Error e = changedBuilder.build(mode, probe))
    return std::move(e);
  return tryOtherArguments(probe, coveredByOriginal.functions(), deadline);
}
