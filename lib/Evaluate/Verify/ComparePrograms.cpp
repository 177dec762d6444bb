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
#include "CopyLogs.h"
#include "Coverage.h"
#include "Sizes.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include <set>

using namespace optiml;
using emu::ReplayFault;

/// The text without "#line", so that places in it can be looked up.
static std::string physicalLines(llvm::StringRef text) {
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

namespace {

struct Outcome {
  ProcessResult process;
  CopyLogFile log;
  std::vector<ReplayFault> faults;
  std::string coverage; ///< its file
  bool stopped() const {
    return process.signal || process.timedOut || process.overMemory || process.exitCode == emu::faultExitCode;
  }
};

struct Input {
  std::vector<std::string> arguments;
  uint64_t fresh = 0; ///< seed of other buffer contents, 0: none
  FreshIntegers integers = FreshIntegers::Random;
  std::string name;
  std::string host;   ///< envFreshHost: the program's own input changes
  bool given = false; ///< the arguments are the user's
};

class Comparison {
public:
  Comparison(OriginalBuilds &originals, const Toolchain &toolchain, const std::string &path,
             const std::string &changedText, const CompileOptions &compile, const CompareOptions &options, TempDir dir)
      : originals(originals), toolchain(toolchain), path(path), changedText(physicalLines(changedText)),
        compile(compile), options(options), dir(std::move(dir)) {}
  llvm::Expected<VerifyReport> run();

private:
  llvm::Expected<Outcome> runOnce(const std::string &program, const Input &input, uint64_t order);
  /// Whether the changed program does well on this input; false when the report is final. `skipped` when the original
  /// itself does not do well on it.
  llvm::Expected<bool> compareOn(const Input &input, std::string &skipped);
  llvm::Expected<bool> judge(const Input &input, Outcome &original, const Outcome &changed, std::string &skipped);
  llvm::Expected<std::set<std::string>> originalFaultKinds(const Input &input);
  /// Tries arguments that may lead to code that has not run; false when the report is final.
  llvm::Expected<bool> reachTheRest();
  /// Forgets what a comparison need not run: kernels that are as they were, and those that nothing launches.
  void leaveOutUnchanged();

  OriginalBuilds &originals;
  const Toolchain &toolchain;
  const std::string &path;
  std::string changedText; ///< with its own numbers of lines
  std::string originalText;
  const CompileOptions &compile;
  const CompareOptions &options;
  TempDir dir;
  std::string shadowProgram, changedProgram;
  unsigned counter = 0;
  double slowest = 0; ///< run on the user's arguments
  int originalExit = 0;
  Coverage covered; ///< of the changed program, in comparisons
  Coverage coveredByOriginal;
  VerifyReport report;
};

llvm::Expected<std::vector<ReplayFault>> readFaults(const std::string &file) {
  std::vector<ReplayFault> faults;
  llvm::Expected<std::string> text = readFile(file);
  if (!text) {
    llvm::consumeError(text.takeError()); // none was written
    return faults;
  }
  for (llvm::StringRef line : llvm::split(*text, '\n')) {
    if (line.empty())
      continue;
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
    if (!value)
      return value.takeError();
    const llvm::json::Object *o = value->getAsObject();
    if (!o)
      continue;
    auto get = [&](const char *key) { return o->getString(key).value_or("").str(); };
    faults.push_back(
        {get("kind"), get("message"), get("file"), uint32_t(o->getInteger("line").value_or(0)), get("kernel")});
  }
  return faults;
}

llvm::Expected<Outcome> Comparison::runOnce(const std::string &program, const Input &input, uint64_t order) {
  bool first = !counter;
  std::string id = std::to_string(counter++), log = dir.file("log" + id), faults = dir.file("faults" + id);
  emu::RunOptions run;
  run.args = input.arguments;
  run.seconds = first         ? std::min(options.seconds, options.firstSeconds)
                : input.given ? options.seconds
                              : std::min(options.seconds, 10 + 10 * slowest);
  run.memoryBytes = options.verify.memoryBytes;
  run.cancel = options.verify.cancel;
  run.faultFile = faults;
  run.env[emu::envCopyLog] = log;
  run.env[emu::envCoverage] = dir.file("coverage" + id);
  run.env[emu::envRaces] = "report";
  run.env[emu::envWorkers] = "1"; // results do not depend on the machine
  if (order)
    run.env[emu::envOrderSeed] = std::to_string(order);
  if (input.fresh) {
    run.env[emu::envFresh] = std::to_string(input.fresh);
    run.env[emu::envFreshHost] = input.host;
    run.env[emu::envFreshIntegers] = input.integers == FreshIntegers::Keep      ? "keep"
                                     : input.integers == FreshIntegers::Shuffle ? "shuffle"
                                                                                : "random";
  }
  llvm::Expected<ProcessResult> process = emu::runProgram(program, run);
  if (!process)
    return process.takeError();
  if (process->cancelled)
    return makeError("verification was cancelled");
  if (input.given)
    slowest = std::max(slowest, process->seconds);
  Outcome outcome;
  outcome.process = std::move(*process);
  outcome.coverage = run.env[emu::envCoverage];
  if (llvm::Error error = readCopyLog(log).moveInto(outcome.log))
    return error;
  if (llvm::Error error = readFaults(faults).moveInto(outcome.faults))
    return error;
  llvm::sys::fs::remove(log);
  llvm::sys::fs::remove(faults);
  return outcome;
}

/// The words of a program's output that are no numbers: those may differ in the last digits, or tell the time.
std::vector<std::string> words(llvm::StringRef output) {
  std::vector<std::string> result;
  llvm::SmallVector<llvm::StringRef, 0> parts;
  llvm::SplitString(output, parts, " \t\r\n,;:=()[]");
  for (llvm::StringRef w : parts)
    if (w.find_first_of("0123456789") == llvm::StringRef::npos && w != "inf" && w != "-inf")
      result.push_back(w.str());
  return result;
}

std::string joined(const std::vector<std::string> &arguments) {
  return arguments.empty() ? "without arguments" : "with arguments " + llvm::join(arguments, " ");
}

llvm::Expected<std::set<std::string>> Comparison::originalFaultKinds(const Input &input) {
  llvm::Expected<std::string> checked = originals.program(toolchain, path, compile, emu::ModeVerify);
  if (!checked)
    return checked.takeError();
  llvm::Expected<Outcome> outcome = runOnce(*checked, input, 0);
  if (!outcome)
    return outcome.takeError();
  std::set<std::string> kinds;
  for (const ReplayFault &f : outcome->faults)
    if (f.kind != "benign-race" && kinds.insert(f.kind).second)
      report.originalFaults.push_back(f);
  return kinds;
}

llvm::Expected<bool> Comparison::judge(const Input &input, Outcome &original, const Outcome &changed,
                                       std::string &skipped) {
  auto fail = [&](Verdict verdict, const std::string &why) {
    report.verdict = verdict;
    report.why = why;
    return false;
  };
  std::vector<ReplayFault> bad;
  for (const ReplayFault &f : changed.faults)
    if (f.kind != "benign-race")
      bad.push_back(f);
  if (!bad.empty()) {
    llvm::Expected<std::set<std::string>> known = originalFaultKinds(input);
    if (!known)
      return known.takeError();
    for (const ReplayFault &f : bad)
      if (!known->count(f.kind)) {
        report.faults = {f};
        return fail(Verdict::RuntimeError, f.kind + ": " + f.message + ", on " + input.name);
      }
    if (input.fresh || !input.given) {
      skipped = "the original fails on it: " + bad.front().message;
      return true;
    }
    if (changed.stopped())
      return fail(Verdict::RuntimeError,
                  "the original does this too, so nothing can be compared: " + bad.back().message);
  }
  if (changed.process.timedOut)
    return fail(Verdict::Timeout, "the changed program " + changed.process.describe() + ", on " + input.name);
  if (changed.process.overMemory)
    return fail(Verdict::OverLimit, "the changed program " + changed.process.describe() + ", on " + input.name);
  if (changed.process.signal)
    return fail(Verdict::RuntimeError, "the changed program was " + changed.process.describe() + ", on " + input.name);
  if (original.log.cut || changed.log.cut)
    report.notes.push_back("not every copy to the host was compared, on " + input.name + ": they are too many");
  unsigned compared = 0;
  auto compare = [&] {
    return input.fresh && input.host.empty() ? compareFresh(original.log, changed.log, options.verify.floats, compared)
                                             : compareLogs(original.log, changed.log, options.verify.floats);
  };
  std::optional<Difference> d = compare();
  if (d && d->tolerance.empty()) {
    // Perhaps the original's own result depends on the order of its blocks.
    llvm::Expected<Outcome> other = runOnce(shadowProgram, input, options.verify.seed + 17);
    if (!other)
      return other.takeError();
    markUnstable(original.log, other->log);
    d = compare();
  }
  if (!d && input.fresh && input.host.empty() && !compared)
    skipped = "the two programs launch no kernel alike";
  if (d) {
    d->input = input.name;
    report.difference = d;
    return fail(Verdict::WrongResult, d->str());
  }
  if (input.fresh) // the programs' own course is that of the first run
    return true;
  if (original.process.exitCode != changed.process.exitCode)
    return fail(Verdict::WrongResult, "the program ends with exit code " + std::to_string(changed.process.exitCode) +
                                          " instead of " + std::to_string(original.process.exitCode) + ", on " +
                                          input.name);
  std::vector<std::string> want = words(original.process.out), have = words(changed.process.out);
  for (size_t i = 0; i < std::max(want.size(), have.size()); ++i) {
    std::string w = i < want.size() ? want[i] : "nothing", h = i < have.size() ? have[i] : "nothing";
    if (w != h)
      return fail(Verdict::WrongResult, "the program prints '" + h + "' instead of '" + w + "', on " + input.name);
  }
  return true;
}

llvm::Expected<bool> Comparison::compareOn(const Input &input, std::string &skipped) {
  skipped.clear();
  llvm::Expected<Outcome> original = runOnce(shadowProgram, input, 0);
  if (!original)
    return original.takeError();
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
  if (!report.runs)
    originalExit = original->process.exitCode;
  if (input.fresh && original->log.fresh.empty() && original->log.inputs.empty()) {
    skipped = "no argument of a kernel is known to point to numbers";
    return true;
  }
  shareErrors(original->log);
  unsigned orders = input.fresh ? 1 : std::max(1u, options.verify.orders);
  for (unsigned order = 0; order < orders; ++order) {
    llvm::Expected<Outcome> changed =
        runOnce(changedProgram, input, order || input.fresh ? options.verify.seed + order : 0);
    if (!changed)
      return changed.takeError();
    if (!input.host.empty() && changed->log.inputs != original->log.inputs && changed->faults.empty()) {
      skipped = "the two programs hand their kernels different buffers";
      return true;
    }
    ++report.runs;
    llvm::Expected<bool> good = judge(input, *original, *changed, skipped);
    if (!good || !*good || !skipped.empty())
      return good;
    for (auto [coverage, outcome] : {std::pair(&covered, &*changed), std::pair(&coveredByOriginal, &*original)})
      if (llvm::Expected<bool> added = coverage->addFile(outcome->coverage); !added)
        return added.takeError();
  }
  ++report.launches;
  return true;
}

llvm::Expected<VerifyReport> Comparison::run() {
  changedProgram = dir.file("changed");
  if (llvm::Error error = readFile(path).moveInto(originalText))
    return std::move(error);
  if (llvm::Error e = emu::buildProgram(compile, {{path, changedText}}, toolchain, emu::ModeVerify | emu::ModeCoverage,
                                        changedProgram)) {
    report.verdict = Verdict::CompileError;
    report.why = llvm::toString(std::move(e));
    return std::move(report);
  }
  if (llvm::Error error =
          originals.program(toolchain, path, compile, emu::ModeShadow | emu::ModeCoverage).moveInto(shadowProgram))
    return error;
  Input given;
  given.arguments = options.arguments;
  given.given = true;
  given.name = "the run " + joined(given.arguments);
  std::string skipped;
  llvm::Expected<bool> good = compareOn(given, skipped);
  if (!good)
    return good.takeError();
  if (!*good)
    return std::move(report);
  if (!skipped.empty())
    return makeError("the original program cannot serve as a reference: {0}", skipped);
  std::vector<Input> inputs;
  for (unsigned i = 0; options.freshKernels && i < options.verify.freshInputs; ++i)
    for (FreshIntegers integers : {FreshIntegers::Random, FreshIntegers::Shuffle, FreshIntegers::Keep})
      inputs.push_back({options.arguments, options.verify.seed + 1 + i, integers,
                        "random inputs, " + joined(options.arguments), ""});
  for (const char *host : {"wide", "negative"})
    if (options.verify.freshInputs)
      inputs.push_back({options.arguments, options.verify.seed + 101, FreshIntegers::Keep,
                        std::string(host) + " input, " + joined(options.arguments), host});
  if (options.otherSizes)
    for (std::vector<std::string> &arguments : oddSizes(options.arguments)) {
      std::string name = "the run " + joined(arguments);
      inputs.push_back({std::move(arguments), 0, FreshIntegers::Random, std::move(name), ""});
    }
  unsigned sizes = 0;
  std::set<uint64_t> freshDone;
  for (const Input &input : inputs) {
    if (input.fresh ? input.host.empty() && freshDone.count(input.fresh) : sizes == 3)
      continue; // integers could change more; three other sizes are enough
    good = compareOn(input, skipped);
    if (!good)
      return good.takeError();
    if (!*good)
      return std::move(report);
    if (!skipped.empty())
      report.notes.push_back(input.name + " is left out: " + skipped);
    else if (input.fresh)
      freshDone.insert(input.fresh);
    else
      ++sizes;
  }
  report.verdict = Verdict::Correct;
  if (!options.everyPath)
    return std::move(report);
  good = reachTheRest();
  if (!good)
    return good.takeError();
  if (!*good)
    return std::move(report);
  std::vector<emu::MissedCode> missed = covered.missed();
  std::vector<std::string> idle = covered.idleKernels();
  report.verdict = missed.empty() && idle.empty() ? Verdict::Correct : Verdict::Untested;
  if (!report.correct()) {
    std::string kernels;
    for (const std::string &symbol : idle)
      kernels += (kernels.empty() ? "no run launched " : ", ") + demangled(symbol);
    report.why = (missed.empty() ? "" : "no run reached " + placesOf(missed, path, changedText)) +
                 (missed.empty() || kernels.empty() ? "" : "; ") + kernels +
                 "; arguments of the program that lead there would tell";
  }
  return std::move(report);
}

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

llvm::Expected<bool> Comparison::reachTheRest() {
  constexpr unsigned mostRuns = 80;
  const Deadline deadline(options.coverageSeconds, options.verify.cancel);
  // Data first: they cost no other size.
  for (unsigned seed = 1; seed <= 3 && options.verify.freshInputs; ++seed)
    for (const char *host : {"masked", "same"}) {
      leaveOutUnchanged();
      if (covered.missed().empty() || deadline.passed())
        break;
      Input input{options.arguments, options.verify.seed + 200 + seed, FreshIntegers::Keep,
                  std::string(*host == 'm' ? "masked" : "random") + " input, " + joined(options.arguments), host};
      std::string skipped;
      llvm::Expected<bool> good = compareOn(input, skipped);
      if (!good || !*good)
        return good;
    }
  std::set<std::vector<std::string>> tried = {options.arguments};
  for (unsigned runs = 0; runs < mostRuns && !deadline.passed();) {
    leaveOutUnchanged();
    std::vector<emu::MissedCode> missed = covered.missed();
    if (missed.empty() && covered.idleKernels().empty())
      return true;
    bool gained = false;
    for (const std::vector<std::string> &arguments : argumentsThatMayReach(missed, changedText, options.arguments)) {
      if (gained || runs == mostRuns || deadline.passed())
        break;
      if (!tried.insert(arguments).second)
        continue;
      ++runs;
      Input input;
      input.arguments = arguments;
      input.name = "the run " + joined(arguments);
      llvm::Expected<Outcome> changed = runOnce(changedProgram, input, 0);
      if (!changed)
        return changed.takeError();
      Coverage probe = covered;
      llvm::Expected<bool> reaches = probe.addFile(changed->coverage);
      if (!reaches)
        return reaches.takeError();
      if (!*reaches && changed->faults.empty())
        continue;
      std::string skipped;
      llvm::Expected<bool> good = compareOn(input, skipped);
      if (!good || !*good)
        return good;
      gained = skipped.empty() && *reaches;
    }
    if (!gained)
      return true;
  }
  return true;
}

} // namespace

llvm::Expected<OriginalBuilds> OriginalBuilds::create() {
  llvm::Expected<TempDir> dir = TempDir::create("optiml-original");
  if (!dir)
    return dir.takeError();
  return OriginalBuilds(std::move(*dir));
}

llvm::Expected<std::string> OriginalBuilds::program(const Toolchain &toolchain, const std::string &path,
                                                    const CompileOptions &compile, uint32_t mode) {
  std::string &file = programs[{path, mode}];
  if (!file.empty())
    return file;
  std::string wanted = dir.file("program" + std::to_string(programs.size()));
  if (llvm::Error e = emu::buildProgram(compile, {}, toolchain, mode, wanted))
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
