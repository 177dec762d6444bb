//===- Rounding.cpp - differences that rounding makes ---------------------===//
#include "Comparison.h"
#include "optiml/Emulator/Build.h"

using namespace optiml;

llvm::Expected<bool> Comparison::differsByRounding(const ProgramInput &input, ProgramOutcome &original) {
  constexpr double slack = 16;
  if (shadowOfChanged.empty()) {
    shadowOfChanged = runner.file("changed-shadow");
    if (llvm::Error e = changedBuilder.build(emu::ModeShadow, shadowOfChanged))
      return std::move(e);
  }
  llvm::Expected<ProgramOutcome> changed = runner.run(shadowOfChanged, typed(input, original), 0);
  if (!changed)
    return changed.takeError();
  if (changed->stopped() || !sameInDoublePrecision(original.log, changed->log))
    return false;
  for (LoggedCopy &copy : original.log.copies)
    copy.content.slack = slack;
  return true;
}

llvm::Error Comparison::roundOtherwise(ProgramInput input, const std::string &rounding, ProgramOutcome &original) {
  input.rounding = rounding;
  llvm::Expected<ProgramOutcome> other = runner.run(shadowProgram, input, 0);
  if (!other)
    return other.takeError();
  markWhereRoundingDecides(original.log, other->log);
  return llvm::Error::success();
}
