//===- LateWork.cpp - work on streams that comes late -----------------------===//
//
// A program whose work on streams lacks an order is right by luck. It also runs with all of that work as late as it may
// be (envLate), and must then copy back and print what it does otherwise.
//
//===----------------------------------------------------------------------===//
#include "Comparison.h"

using namespace optiml;

/// The first word that is not what it was in both of two usual runs: what differs in those is a time, say.
static std::optional<std::string> printsOtherwise(const ProcessResult &first, const ProcessResult &again,
                                                  const ProcessResult &late) {
  constexpr double rounding = 1e-3;
  std::vector<std::string> one = wordsOf(first.out), two = wordsOf(again.out), three = wordsOf(late.out);
  for (size_t i = 0; i < one.size() && i < two.size(); ++i) {
    double wanted = 0, has = 0;
    std::string now = i < three.size() ? three[i] : "nothing";
    if (one[i] != two[i] || one[i] == now)
      continue;
    if (!llvm::StringRef(one[i]).getAsDouble(wanted) && !llvm::StringRef(now).getAsDouble(has) &&
        std::fabs(wanted - has) <= rounding * std::fabs(wanted))
      continue;
    return "it prints '" + now + "' instead of '" + one[i] + "'";
  }
  return std::nullopt;
}

llvm::Expected<std::optional<std::string>> Comparison::differsWhenLate(const std::string &program) {
  ProgramInput input;
  input.arguments = options.arguments;
  input.given = true;
  llvm::Expected<ProgramOutcome> first = runner.run(program, input, 0), again = runner.run(program, input, 0);
  input.late = true;
  llvm::Expected<ProgramOutcome> late = runner.run(program, input, 0);
  if (!first || !again || !late)
    return llvm::joinErrors(first.takeError(), llvm::joinErrors(again.takeError(), late.takeError()));
  if (compareLogs(first->log, again->log, options.verify.floats))
    return std::nullopt; // no two of its runs are the same
  if (late->stopped())
    return late->faults.empty() ? "it " + late->process.describe() : late->faults.front().message;
  if (late->process.exitCode != first->process.exitCode)
    return "it ends with exit code " + std::to_string(late->process.exitCode) + " instead of " +
           std::to_string(first->process.exitCode);
  if (std::optional<Difference> d = compareLogs(first->log, late->log, options.verify.floats)) {
    d->input = "the run " + joined(options.arguments);
    return d->str();
  }
  return printsOtherwise(first->process, again->process, late->process);
}

llvm::Expected<bool> Comparison::compareLate() {
  std::optional<std::string> wrong[2];
  for (bool isOriginal : {false, true}) {
    if (llvm::Error error = differsWhenLate(isOriginal ? shadowProgram : changedProgram).moveInto(wrong[isOriginal]))
      return std::move(error);
    if (!wrong[isOriginal])
      break;
  }
  ++report.runs;
  if (wrong[0] && !wrong[1])
    return fail(Verdict::WrongResult,
                "a synchronization or an event is missing: with work on streams as late as it may be, " + *wrong[0]) ||
           options.findAll;
  if (wrong[1])
    report.notes.push_back("the original itself relies on work on streams being done early: " + *wrong[1]);
  return true;
}
