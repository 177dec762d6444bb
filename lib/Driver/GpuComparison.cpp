//===- GpuComparison.cpp - two whole programs on a GPU --------------------===//
#include "GpuProgram.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>

using namespace optiml;

// A whole program's kernels may take this much longer by chance; between runs of one program that is what is seen.
static constexpr double programNoise = 1.02;
static constexpr unsigned programRuns = 5;
static constexpr double programRunsSeconds = 10; // of wall time, for all of them
static constexpr double slowRunSeconds = 2;      // a program that runs so long is timed once where a search comes after
// A whole program that is so much faster in its first run need not run again, unless it is over sooner than that, which
// gives a better figure.
static constexpr double clearGain = 1.1, mayRunAgainSeconds = 0.5;
// The same where both were captured: what is copied before a launch leaves the caches in another state. A smaller gain
// that other runs show too is one.
static constexpr double clearCapturedGain = 1.25, likelyGain = 1.02;

llvm::Expected<ProgramTimes> optiml::timeBesides(const SearchTask &task, const OriginalProgram &original,
                                                 const std::string &changed, const GpuRun *watched) {
  ProgramTimes times{original.run.times.kernelSeconds, 0};
  auto endsAlike = [&](const GpuRun &rewritten) -> llvm::Error {
    if (rewritten.exitCode == original.run.exitCode)
      return llvm::Error::success();
    return makeError("the rewritten program ends with exit code {0} instead of {1}", rewritten.exitCode,
                     original.run.exitCode);
  };
  double gain = 0; // where both were captured
  if (watched) {
    if (llvm::Error e = endsAlike(*watched))
      return std::move(e);
    gain = times.before / watched->times.kernelSeconds;
    if (watched->seconds > slowRunSeconds || gain >= clearCapturedGain || gain * clearCapturedGain <= 1)
      return ProgramTimes{times.before, watched->times.kernelSeconds};
  }
  for (unsigned i = 0; i < 2; ++i) {
    auto rewritten = timeGpuProgram(task, changed);
    if (!rewritten)
      return rewritten.takeError();
    if (llvm::Error e = endsAlike(*rewritten))
      return std::move(e);
    times.after = i ? std::min(times.after, rewritten->times.kernelSeconds) : rewritten->times.kernelSeconds;
    const bool isClear = original.run.isUndisturbed() &&
                         (clearGain * times.after <= times.before || clearGain * times.before <= times.after);
    if (rewritten->seconds > slowRunSeconds || isClear)
      break;
    auto again = timeGpuProgram(task, original.executable);
    if (!again)
      return again.takeError();
    times.before = std::min(times.before, again->times.kernelSeconds);
    const bool isLikely =
        gain >= likelyGain && likelyGain * rewritten->times.kernelSeconds <= again->times.kernelSeconds;
    if (rewritten->seconds > mayRunAgainSeconds || isLikely) // the search needs the time more
      break;
  }
  return times;
}

namespace {
/// Runs of both programs.
struct Runs {
  std::vector<GpuRun> originals, changed;
  double before, after = 0; ///< seconds of their kernels: the shortest runs, as a first launch also loads the kernel
};
} // namespace

static llvm::Expected<Runs> runByTurns(const SearchTask &task, const OriginalProgram &original,
                                       const std::string &changed) {
  const GpuRun &first = original.run;
  Runs runs{{first}, {}, first.times.kernelSeconds};
  double spent = 0;
  for (unsigned i = 0; i < programRuns; ++i) {
    auto rewritten = timeGpuProgram(task, changed);
    if (!rewritten)
      return makeError("the rewritten program cannot be run: {0}", llvm::toString(rewritten.takeError()));
    // One run each tells enough where there is no doubt. What was captured has been timed since.
    const double known = first.isUndisturbed() || !(original.kernelSeconds > 0)
                             ? runs.before
                             : std::min(runs.before, original.kernelSeconds);
    if (i == 0 && first.seconds > mayRunAgainSeconds && rewritten->exitCode == first.exitCode &&
        compareOutputs(first.out, first.out, rewritten->out).word.empty() &&
        clearGain * rewritten->times.kernelSeconds <= known) {
      runs.before = known;
      runs.after = rewritten->times.kernelSeconds;
      runs.changed.push_back(std::move(*rewritten));
      runs.originals.push_back(first);
      return runs;
    }
    auto again = timeGpuProgram(task, original.executable);
    if (!again)
      return again.takeError();
    runs.before = std::min(runs.before, again->times.kernelSeconds);
    runs.after = i ? std::min(runs.after, rewritten->times.kernelSeconds) : rewritten->times.kernelSeconds;
    spent += again->seconds + rewritten->seconds;
    runs.originals.push_back(std::move(*again));
    runs.changed.push_back(std::move(*rewritten));
    const bool isLate = task.flags.budget.seconds > 0 && task.leftOf(1) <= 0; // then one pair will do
    if (((i || isLate) && runs.after <= runs.before) || clearGain * runs.after <= runs.before ||
        spent > programRunsSeconds)
      break;
  }
  return runs;
}

/// What the outputs and times say.
static llvm::Error compareRuns(const Runs &runs, nlohmann::json &summary) {
  const GpuRun &first = runs.originals[0], &again = runs.originals[1], &rewritten = runs.changed[0];
  if (first.exitCode == again.exitCode && rewritten.exitCode != first.exitCode)
    return makeError("the rewritten program ends with exit code {0} instead of {1}", rewritten.exitCode,
                     first.exitCode);
  const OutputDifference difference = compareOutputs(first.out, again.out, rewritten.out);
  if (!difference.word.empty())
    return makeError("the rewritten program prints {0}", difference.word);
  if (!difference.number.empty())
    summary["programNumbers"] = difference.number;
  summary["programSeconds"] = runs.before;
  summary["programSecondsOptimized"] = runs.after;
  if (runs.after > programNoise * runs.before)
    return makeError("within the whole program its kernels take {0:f1} us instead of {1:f1} us", runs.after * 1e6,
                     runs.before * 1e6);
  if (runs.after > 0)
    summary["programSpeedup"] = runs.before / runs.after;
  return llvm::Error::success();
}

llvm::Error optiml::comparePausedProgram(const SearchTask &task, ObservedProgram &original, const std::string &changed,
                                         double seconds, nlohmann::json &summary) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  auto program = ObservedProgram::start(task, changed, {});
  if (!program)
    return program.takeError();
  auto rewritten = (*program)->wait(seconds);
  if (!rewritten)
    return makeError("the rewritten program cannot be run: {0}", llvm::toString(rewritten.takeError()));
  auto notCompared = [&](const char *which) {
    summary["programNotCompared"] =
        llvm::formatv("the {0} program did not end within {1:f1} s, so what they print is not compared", which, seconds)
            .str();
    return llvm::Error::success();
  };
  if (!*rewritten)
    return notCompared("rewritten");
  const double spent = std::chrono::duration<double>(Clock::now() - began).count();
  auto first = original.finish(std::max(0.0, seconds - spent));
  if (!first)
    return first.takeError();
  if (!*first) {
    if ((*rewritten)->exitCode)
      return makeError("the rewritten program ends with exit code {0}", (*rewritten)->exitCode);
    return notCompared("original");
  }
  return compareRuns(
      {{**first, **first}, {**rewritten}, (*first)->times.kernelSeconds, (*rewritten)->times.kernelSeconds}, summary);
}

llvm::Error optiml::compareGpuPrograms(const SearchTask &task, const OriginalProgram &original,
                                       const std::string &changed, nlohmann::json &summary) {
  auto runs = runByTurns(task, original, changed);
  if (!runs)
    return runs.takeError();
  return compareRuns(*runs, summary);
}
