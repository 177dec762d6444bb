//===- Reach.cpp - arguments and data that lead to code ----------------------===//
//
// What a comparison tries where code of the changed program has not run: other data, arguments that the explorer finds,
// and buffers that begin elsewhere.
//
//===----------------------------------------------------------------------===//
#include "Comparison.h"
#include "Sizes.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
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
    if (!mayBeLaunched(changedText, symbol))
      covered.ignore(symbol);
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

llvm::Expected<bool> Comparison::compareWith(const Arguments &arguments, double alone) {
  constexpr double mostForRaces = 0.3;
  ProgramInput input;
  input.quick = alone > mostForRaces; // smaller sizes show races
  input.arguments = arguments;
  input.name = "the run " + joined(arguments);
  std::string skipped;
  auto begin = std::chrono::steady_clock::now();
  llvm::Expected<bool> good = compareOn(input, skipped);
  if (!skipped.empty())
    report.notes.push_back(input.name + " is left out: " + skipped);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  constexpr double isLong = 1;
  if (!good || !*good || !skipped.empty() || !options.verify.freshInputs || seconds > isLong)
    return good;
  constexpr FloatRange kinds[] = {FloatRange::Wide,     FloatRange::Masked, FloatRange::Few,
                                  FloatRange::Negative, FloatRange::Same,   FloatRange::Extreme};
  ProgramInput other = otherData(arguments, kinds[dataKind++ % std::size(kinds)]);
  other.fresh += 200 + dataKind;
  other.quick = input.quick;
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
      llvm::Expected<std::optional<ProgramCoverage>> run = runner.probe(program, arguments, {}, shift);
      if (!run)
        return run.takeError();
      if (Coverage probe = covered; !*run || !probe.add(**run))
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
  const Deadline deadline(options.coverageSeconds / 8, options.verify.cancel);
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

llvm::Expected<bool> Comparison::tryOtherArguments(const std::string &program, const std::set<uint64_t> &known,
                                                   const Deadline &deadline) {
  constexpr size_t mostCompared = 48;
  ArgumentExplorer explorer(
      [&](const Arguments &arguments, const ArgumentExplorer::ProbeOptions &how) {
        return runner.probe(program, arguments, how);
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
  const double quickSeconds = options.coverageSeconds / 18;
  for (bool thorough : {false, true}) {
    leaveOutUnchanged();
    if (deadline.passed() || (thorough && nothingMissed()))
      break;
    const Deadline time(thorough ? deadline.remaining() : std::min(quickSeconds, deadline.remaining()),
                        deadline.flag());
    if (llvm::Error error = explorer.explore(Deadline(time.remaining() / 2, time.flag()), thorough))
      return std::move(error);
    if (!thorough)
      for (const Arguments &arguments : cornerSizes(*whole)) {
        if (time.passed() || compared.count(arguments))
          continue;
        llvm::Expected<bool> good = compareWith(arguments, 0);
        if (!good || !*good)
          return good;
      }
    Features seen;
    for (const Arguments &arguments : compared)
      seen.merge(explorer.featuresOf(arguments));
    for (const Arguments &arguments : explorer.worthComparing(seen, mostCompared)) {
      if (time.passed())
        break;
      if (compared.count(arguments))
        continue;
      llvm::Expected<bool> good = compareWith(arguments, explorer.secondsOf(arguments));
      if (!good || !*good)
        return good;
    }
  }
  // Quotients that round up have no condition that would tell whether they did.
  constexpr int64_t unit = 32;
  const Deadline time(std::min(quickSeconds, deadline.remaining()), deadline.flag());
  for (const Arguments &arguments : explorer.worthComparing({}, 12)) {
    Arguments rounded = roundedSizes(arguments, unit);
    if (time.passed() || compared.count(rounded))
      continue;
    llvm::Expected<bool> good = compareWith(rounded, explorer.secondsOf(arguments));
    if (!good || !*good)
      return good;
  }
  return tryOtherAlignment(program, explorer.worthComparing({}, 8), deadline);
}

llvm::Expected<bool> Comparison::reachTheRest() {
  const Deadline deadline(options.coverageSeconds, options.verify.cancel);
  llvm::Expected<bool> good = tryOtherData(deadline); // it costs no other size
  if (!good || !*good)
    return good;
  leaveOutUnchanged();
  std::string probe = runner.file("probe");
  const uint32_t mode = emu::ModePlain | emu::ModeCoverage | emu::ModeConditions;
  if (llvm::Error e = emu::buildProgram(compile, {{path, changedText}}, toolchain, mode, probe))
    return std::move(e);
  return tryOtherArguments(probe, coveredByOriginal.functions(), deadline);
}
