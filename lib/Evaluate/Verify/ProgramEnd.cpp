//===- ProgramEnd.cpp - how a changed program comes to its end -------------===//
//
// It must not fail where the original does not, and must not hang.
//
//===----------------------------------------------------------------------===//
#include "Comparison.h"
#include <set>

using namespace optiml;
using emu::ReplayFault;

/// Whether it is among them, perhaps of another thread.
static bool tells(llvm::ArrayRef<ReplayFault> faults, const ReplayFault &fault) {
  return llvm::any_of(faults, [&](const ReplayFault &f) {
    return f.kind == fault.kind && f.kernel == fault.kernel && f.file == fault.file && f.line == fault.line;
  });
}

llvm::Expected<std::set<std::string>> Comparison::originalFaultKinds(const ProgramInput &input) {
  llvm::Expected<std::string> checked = originals.program(toolchain, path, options.appended, compile, emu::ModeVerify);
  if (!checked)
    return checked.takeError();
  llvm::Expected<ProgramOutcome> outcome = runner.run(*checked, input, 0);
  if (!outcome)
    return outcome.takeError();
  std::set<std::string> kinds;
  for (const ReplayFault &f : outcome->faults)
    if (f.kind != "benign-race" && kinds.insert(f.kind).second && !tells(report.originalFaults, f))
      report.originalFaults.push_back(f);
  return kinds;
}

llvm::Expected<bool> Comparison::isUnused(const ProgramOutcome &changed) {
  ProgramInput input = changed.input;
  input.otherFill = !input.otherFill;
  llvm::Expected<ProgramOutcome> other = runner.run(changed.program, input, changed.order);
  if (!other)
    return other.takeError();
  return other->process.exitCode == changed.process.exitCode && other->process.out == changed.process.out &&
         other->faults.size() == changed.faults.size() && sameBytes(changed.log, other->log);
}

llvm::Expected<bool> Comparison::hangs(const ProgramOutcome &original, const ProgramOutcome &changed) {
  constexpr double manyTimes = 10; // what the original takes
  if (changed.process.seconds < manyTimes * original.process.seconds)
    return false;
  // Threads that wait for one another cost the emulator a hundred times what other threads do.
  if (changed.input.seconds >= hangSeconds)
    return true;
  ProgramInput input = changed.input;
  input.seconds = hangSeconds;
  llvm::Expected<ProgramOutcome> again = runWithoutRaces(input, changed.order);
  if (!again)
    return again.takeError();
  return again->process.timedOut;
}

llvm::Expected<bool> Comparison::judgeEnd(const ProgramInput &input, const ProgramOutcome &original,
                                          const ProgramOutcome &changed, std::string &skipped) {
  std::vector<ReplayFault> bad;
  for (const ReplayFault &f : changed.faults)
    if (f.kind != "benign-race")
      bad.push_back(f);
  if (!bad.empty() && !input.shift.empty()) {
    skipped = "the changed program relies on alignment: " + bad.front().message;
    return true;
  }
  const bool onlyUnwritten = llvm::all_of(bad, [](const ReplayFault &f) { return f.kind == "uninitialized-shared"; });
  if (!bad.empty() && onlyUnwritten && !changed.stopped()) {
    llvm::Expected<bool> unused = isUnused(changed);
    if (!unused)
      return unused.takeError();
    if (*unused) {
      note("the changed program reads shared memory that nothing has written, and does not use it: " +
           bad.front().message);
      bad.clear();
    }
  }
  if (!bad.empty()) {
    llvm::Expected<std::set<std::string>> known = originalFaultKinds(input);
    if (!known)
      return known.takeError();
    for (const ReplayFault &f : bad)
      if (!known->count(f.kind)) {
        report.faults = {f};
        return fail(Verdict::RuntimeError, f.kind + ": " + f.message, input.name,
                    f.kind + f.kernel + f.file + std::to_string(f.line));
      }
    if (input.fresh || !input.given) {
      skipped = "the original fails on it: " + bad.front().message;
      return true;
    }
    if (changed.stopped())
      return fail(Verdict::Untested,
                  "the original does this too, so that nothing can be compared: " + bad.back().message);
  }
  // Sizes that were looked for, and not asked for, may be too large for the one program and not for the other.
  const ProcessResult &end = changed.process;
  if (!input.given && (end.overMemory || end.timedOut)) {
    llvm::Expected<bool> hang = end.timedOut ? hangs(original, changed) : false;
    if (!hang)
      return hang.takeError();
    if (!*hang) {
      skipped = "the changed program " + end.describe();
      return true;
    }
  }
  if (end.timedOut)
    return fail(Verdict::Timeout, "the changed program " + end.describe(), input.name);
  if (end.overMemory)
    return fail(Verdict::OverLimit, "the changed program " + end.describe(), input.name);
  if (end.signal)
    return fail(Verdict::RuntimeError, "the changed program was " + end.describe(), input.name);
  return true;
}
