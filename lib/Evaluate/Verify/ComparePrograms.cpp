//===- ComparePrograms.cpp - do two programs compute the same? -------------===//
//
// The original is built with double-precision twins, the changed version with every check. Both run on the same
// arguments, in two orders of blocks, with odd sizes in place of the arguments' integers, and with input that lies far
// apart or below zero; what they copy back is compared. In a further run every kernel is also tried on random contents
// of its buffers, and those that the program reads back are compared. Where code of the changed program's kernels has
// not run by then, further arguments are tried that may lead there (Sizes.h); code that never ran makes the answer
// "cannot tell".
//
//===----------------------------------------------------------------------===//
#include "Comparison.h"
#include "Sizes.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <future>
#include <set>

using namespace optiml;
using emu::ReplayFault;

std::string optiml::physicalLines(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    if (!line.starts_with("#line "))
      result += line;
    result += '\n';
    text = rest;
  }
  return result;
}

std::string optiml::joined(const Arguments &arguments) {
  return arguments.empty() ? "without arguments" : "with arguments " + llvm::join(arguments, " ");
}

std::vector<std::string> optiml::wordsOf(llvm::StringRef output) {
  llvm::SmallVector<llvm::StringRef, 0> parts;
  llvm::SplitString(output, parts, " \t\r\n,;:=()[]");
  return std::vector<std::string>(parts.begin(), parts.end());
}

/// Those that are no numbers: numbers may differ in the last digits, or tell the time.
static std::vector<std::string> wordsButNumbers(llvm::StringRef output) {
  std::vector<std::string> words = wordsOf(output);
  llvm::erase_if(words, [](llvm::StringRef w) {
    return w.find_first_of("0123456789") != llvm::StringRef::npos || w == "inf" || w == "-inf";
  });
  return words;
}

llvm::Expected<bool> Comparison::judgeResults(const ProgramInput &input, ProgramOutcome &original,
                                              const ProgramOutcome &changed, std::string &skipped) {
  if (original.log.cut || changed.log.cut)
    report.notes.push_back("not every copy to the host was compared, on " + input.name + ": they are too many");
  const bool byKernel = input.fresh && !input.host;
  unsigned compared = 0;
  auto compare = [&] {
    return byKernel ? compareFresh(original.log, changed.log, options.verify.floats, compared)
                    : compareLogs(original.log, changed.log, options.verify.floats);
  };
  std::optional<Difference> d = compare();
  if (d && d->tolerance.empty()) {
    // Perhaps the original's own result depends on the order of its blocks.
    ProgramInput again = input;
    again.otherFill = true;
    llvm::Expected<ProgramOutcome> other = runner.run(shadowProgram, again, options.verify.seed + 17);
    if (!other)
      return other.takeError();
    markUnstable(original.log, other->log);
    d = compare();
  }
  if (d && !d->tolerance.empty() && !byKernel) {
    llvm::Expected<bool> rounding = differsByRounding(input, original);
    if (!rounding)
      return rounding.takeError();
    if (*rounding)
      d = compare();
  }
  // Huge numbers hide differences. Which of several centres is the nearest may then depend on rounding.
  const bool unusual = input.host && *input.host != FloatRange::Same && !options.verify.floats.isStrict();
  for (const char *rounding : {"up", "down"}) {
    if (!d || !unusual)
      break;
    if (llvm::Error error = roundOtherwise(input, rounding, original))
      return std::move(error);
    d = compare();
  }
  if (!d && byKernel && !compared)
    skipped = "the two programs launch no kernel alike";
  if (!d)
    return true;
  if (!report.difference)
    report.difference = d;
  std::string place = d->buffer; // whatever its size
  llvm::erase_if(place, llvm::isDigit);
  return fail(Verdict::WrongResult, d->str(), input.name, d->kernel + place);
}

bool Comparison::judgeOutput(const ProgramInput &input, const ProcessResult &original, const ProcessResult &changed) {
  if (original.exitCode != changed.exitCode)
    return fail(Verdict::WrongResult,
                "the program ends with exit code " + std::to_string(changed.exitCode) + " instead of " +
                    std::to_string(original.exitCode),
                input.name);
  std::vector<std::string> want = wordsButNumbers(original.out), have = wordsButNumbers(changed.out);
  for (size_t i = 0; i < std::max(want.size(), have.size()); ++i) {
    std::string w = i < want.size() ? want[i] : "nothing", h = i < have.size() ? have[i] : "nothing";
    if (w != h)
      return fail(Verdict::WrongResult, "the program prints '" + h + "' instead of '" + w + "'", input.name);
  }
  return true;
}

llvm::Expected<bool> Comparison::judge(const ProgramInput &input, ProgramOutcome &original,
                                       const ProgramOutcome &changed, std::string &skipped) {
  llvm::Expected<bool> good = judgeEnd(input, original, changed, skipped);
  if (!good || !*good || !skipped.empty())
    return good;
  good = judgeResults(input, original, changed, skipped);
  if (!good || !*good || input.fresh) // the programs' own course is that of the first run
    return good;
  return judgeOutput(input, original.process, changed.process);
}

llvm::Expected<ProgramOutcome> Comparison::runWithoutRaces(const ProgramInput &input, uint64_t seed) {
  if (quickProgram.empty()) {
    quickProgram = runner.file("quick");
    if (llvm::Error e = changedBuilder.build(emu::ModeBounds | emu::ModeCoverage, quickProgram))
      return std::move(e);
  }
  return runner.run(quickProgram, input, seed);
}

llvm::Expected<ProgramOutcome> Comparison::runTheChanged(ProgramInput input, unsigned order) {
  input.otherFill = order % 2;
  const uint64_t seed = order || input.fresh ? options.verify.seed + order : 0;
  if (auto known = raceFree.find(input.arguments); input.fresh && !input.quick && known != raceFree.end()) {
    llvm::Expected<ProgramOutcome> outcome = runWithoutRaces(input, seed);
    if (!outcome || (outcome->coverage.launches == known->second && !outcome->coverage.dataDecides))
      return outcome;
    raceFree.erase(known); // data decides what the host does
  }
  if (!input.quick) {
    llvm::Expected<ProgramOutcome> outcome = runner.run(changedProgram, input, seed);
    if (!outcome || input.given || !outcome->process.timedOut)
      return outcome;
  }
  // A size that nobody asked for may be too large for the search for races.
  return runWithoutRaces(input, seed);
}

llvm::Expected<bool> Comparison::compareOn(const ProgramInput &input, std::string &skipped) {
  skipped.clear();
  llvm::Expected<bool> good = compareOnce(input, skipped);
  if (!good || *good)
    return good;
  compared.insert(input.arguments);
  return options.findAll && report.findings.size() < mostFindings;
}

/// Comparing results depends on what the inputs were made to be.
static void tellKindOfInput(const ProgramInput &input, ProgramOutcome &original) {
  for (std::vector<LoggedCopy> *copies : {&original.log.copies, &original.log.fresh})
    for (LoggedCopy &copy : *copies) {
      const bool hasNaN = input.host == FloatRange::LoneNaN;
      copy.content.synthetic = input.fresh && !hasNaN;
      copy.content.looseNaN = hasNaN && !original.coverage.testsNaN;
      copy.content.extreme = input.host == FloatRange::Extreme;
      copy.content.masked = input.host == FloatRange::Masked;
    }
}

llvm::Expected<bool> Comparison::compareOnce(const ProgramInput &input, std::string &skipped) {
  auto runChanged = [&](unsigned order) { return runTheChanged(input, order); };
  // The very first run tells how long others may take.
  auto how = report.runs ? std::launch::async : std::launch::deferred;
  std::future<llvm::Expected<ProgramOutcome>> beside = std::async(how, runChanged, 0u);
  llvm::Expected<ProgramOutcome> original = runner.run(shadowProgram, input, 0), changed = beside.get();
  if (!original || !changed)
    return llvm::joinErrors(original.takeError(), changed.takeError());
  if (original->stopped()) {
    skipped =
        "the original " + (original->faults.empty() ? original->process.describe() : original->faults.front().message);
    return true;
  }
  if (original->process.exitCode != originalExit && !input.fresh && report.runs) {
    skipped = "the original ends with exit code " + std::to_string(original->process.exitCode);
    return true;
  }
  if (!report.runs && original->log.copies.empty() && llvm::StringRef(original->process.out).trim().empty()) {
    skipped = "it copies nothing back to the host and prints nothing, so that nothing could differ";
    return true;
  }
  if (!report.runs) {
    originalExit = original->process.exitCode;
    runner.expectExitCode(originalExit);
  }
  if (input.fresh && original->log.fresh.empty() && original->log.inputs.empty()) {
    skipped = "no argument of a kernel is known to point to numbers";
    return true;
  }
  shareErrors(original->log);
  tellKindOfInput(input, *original);
  constexpr double isLong = 0.5; // seconds
  bool once = input.fresh || (!input.given && original->process.cpuSeconds > isLong);
  unsigned orders = once ? 1 : std::max(1u, options.verify.orders);
  bool clean = true; // not even two stores of the same value, which with other data are none
  for (unsigned order = 0; order < orders; ++order) {
    if (order) {
      llvm::Expected<ProgramOutcome> again = runChanged(order);
      if (!again)
        return again.takeError();
      *changed = std::move(*again);
    }
    if (input.host && changed->log.inputs != original->log.inputs) {
      llvm::Expected<ProgramOutcome> again = runTheChanged(typed(input, *original), order);
      if (!again)
        return again.takeError();
      *changed = std::move(*again);
    }
    if (input.host && changed->log.inputs != original->log.inputs && changed->faults.empty()) {
      skipped = "the two programs hand their kernels different buffers";
      return true;
    }
    ++report.runs;
    llvm::Expected<bool> good = judge(input, *original, *changed, skipped);
    if (!good || !*good || !skipped.empty())
      return good;
    clean &= changed->faults.empty();
    covered.add(changed->coverage);
    coveredByOriginal.add(original->coverage);
    if (input.given) {
      usesStreams = changed->log.usesStreams;
      runner.setFreshKernels(original->coverage.ran);
      constants = original->coverage.constants;
    }
  }
  constexpr double worthAnother = 0.1; // seconds: a program without the search for races has to be built
  if (clean && changed->program == changedProgram && !input.fresh && input.shift.empty() &&
      !changed->coverage.dataDecides && changed->process.cpuSeconds > worthAnother)
    raceFree[input.arguments] = changed->coverage.launches;
  ++report.launches;
  compared.insert(input.arguments);
  return true;
}

ProgramInput Comparison::otherData(const Arguments &arguments, FloatRange floats, FreshIntegers integers) const {
  const bool ofIntegers = integers != FreshIntegers::Keep;
  if (floats == FloatRange::Extreme && options.verify.floats.allowsTensorCores())
    floats = FloatRange::Same; // of denormal numbers TF32 keeps no digit that counts
  std::string kind(ofIntegers ? nameOf(integers) : nameOf(floats));
  return {arguments, options.verify.seed + 101, integers,
          kind + (ofIntegers ? " integers as input, " : " input, ") + joined(arguments), floats};
}

bool Comparison::takes(llvm::function_ref<bool(const ElementType &)> wanted) const {
  return llvm::any_of(coveredByOriginal.pointees(), [&](const std::string &pointee) {
    if (std::optional<RecordLayout> layout = recordLayout(pointee)) // its integers stay
      return llvm::any_of(layout->fields, [&](const RecordField &f) { return f.type.isFloating() && wanted(f.type); });
    return wanted(elementType(pointee));
  });
}

std::vector<ProgramInput> Comparison::usualInputs() const {
  std::vector<ProgramInput> inputs;
  for (unsigned i = 0; options.freshKernels && i < options.verify.freshInputs; ++i)
    for (FreshIntegers integers : {FreshIntegers::Random, FreshIntegers::Shuffle, FreshIntegers::Keep})
      inputs.push_back({options.arguments,
                        options.verify.seed + 1 + i,
                        integers,
                        "random inputs, " + joined(options.arguments),
                        {}});
  if (options.verify.freshInputs && takes([](const ElementType &e) { return e.isFloating(); }))
    for (FloatRange floats : {FloatRange::Wide, FloatRange::Negative, FloatRange::Few, FloatRange::LoneNaN,
                              FloatRange::Masked, FloatRange::Extreme})
      inputs.push_back(otherData(options.arguments, floats));
  if (options.verify.freshInputs &&
      takes([](const ElementType &e) { return e.kind == ElementKind::Integer && !e.isBool; }))
    for (FreshIntegers integers : {FreshIntegers::Extreme, FreshIntegers::Drawn, FreshIntegers::Equal,
                                   FreshIntegers::Sorted, FreshIntegers::Reversed})
      inputs.push_back(otherData(options.arguments, FloatRange::Same, integers));
  if (options.otherSizes)
    for (Arguments &arguments : oddSizes(options.arguments)) {
      std::string name = "the run " + joined(arguments);
      inputs.push_back({std::move(arguments), 0, FreshIntegers::Random, std::move(name), {}});
      inputs.back().otherMemory = inputs.size() % 2;
    }
  return inputs;
}

llvm::Expected<bool> Comparison::compareOnUsualInputs() {
  unsigned sizes = 0;
  std::set<uint64_t> freshDone;
  std::string skipped;
  for (const ProgramInput &input : usualInputs()) {
    if (input.fresh ? !input.host && freshDone.count(input.fresh) : sizes == 3)
      continue; // integers could change more; three other sizes are enough
    llvm::Expected<bool> good = compareOn(input, skipped);
    if (!good || !*good)
      return good;
    if (!skipped.empty())
      leaveOut(input, skipped);
    else if (input.fresh)
      freshDone.insert(input.fresh);
    else
      ++sizes;
  }
  return true;
}

std::string Comparison::whatIsMissing() const {
  std::vector<std::string> why, kernels;
  if (auto missed = covered.missed(); !missed.empty())
    why.push_back("no run reached " + placesOf(missed, path, changedText));
  if (auto sites = covered.missedSites(); !sites.empty())
    why.push_back("no run came to " + placesOf(sites, path, changedText));
  for (const std::string &symbol : covered.idleKernels())
    kernels.push_back(demangled(symbol));
  if (!kernels.empty())
    why.push_back("no run launched " + llvm::join(kernels, ", "));
  return llvm::join(why, "; ") + "; arguments of the program that lead there would tell";
}

llvm::Expected<VerifyReport> Comparison::run() {
  changedProgram = runner.file("changed");
  if (llvm::Error error = readFile(path).moveInto(originalText))
    return std::move(error);
  originalText += options.appended;
  if (llvm::Error e = changedBuilder.build(emu::ModeVerify | emu::ModeCoverage, changedProgram)) {
    fail(Verdict::CompileError, llvm::toString(std::move(e)));
    return std::move(report);
  }
  if (llvm::Error error =
          originals.program(toolchain, path, options.appended, compile, emu::ModeShadow | emu::ModeCoverage)
              .moveInto(shadowProgram))
    return error;
  ProgramInput given;
  given.arguments = options.arguments;
  given.given = true;
  given.name = "the run " + joined(given.arguments);
  std::string skipped;
  llvm::Expected<bool> good = compareOn(given, skipped);
  if (good && !skipped.empty())
    return makeError("the original program cannot serve as a reference: {0}", skipped);
  if (good && *good && usesStreams)
    good = compareLate();
  if (good && *good)
    good = compareOnUsualInputs();
  if (good && *good && options.everyPath)
    good = reachTheRest();
  if (!good)
    return good.takeError();
  tellWhatIsLeftOut();
  if (!*good)
    return std::move(report);
  if (!report.findings.empty())
    return std::move(report);
  leaveOutUnchanged();
  report.verdict = Verdict::Correct;
  if (options.everyPath && !nothingMissed())
    fail(Verdict::Untested, whatIsMissing());
  return std::move(report);
}

llvm::Expected<OriginalBuilds> OriginalBuilds::create() {
  llvm::Expected<TempDir> dir = TempDir::create("optiml-original");
  if (!dir)
    return dir.takeError();
  return OriginalBuilds(std::move(*dir));
}

llvm::Expected<std::string> OriginalBuilds::program(const Toolchain &toolchain, const std::string &path,
                                                    const std::string &appended, const CompileOptions &compile,
                                                    uint32_t mode) {
  std::string &file = programs[{path, appended, mode}];
  if (!file.empty())
    return file;
  std::map<std::string, std::string> texts;
  if (!appended.empty()) {
    if (llvm::Error error = readFile(path).moveInto(texts[path]))
      return std::move(error);
    texts[path] += appended;
  }
  std::string wanted = dir.file("program" + std::to_string(programs.size()));
  if (llvm::Error e = emu::buildProgram(compile, texts, toolchain, mode, wanted))
    return std::move(e);
  return file = wanted;
}

llvm::Expected<VerifyReport> optiml::comparePrograms(OriginalBuilds &originals, const Toolchain &toolchain,
                                                     const std::string &path, const std::string &changedText,
                                                     const CompileOptions &compile, const CompareOptions &options) {
  llvm::Expected<TempDir> dir = TempDir::create("optiml-verify");
  if (!dir)
    return dir.takeError();
  return Comparison(originals, toolchain, path, changedText, compile, options, std::move(*dir)).run();
}
