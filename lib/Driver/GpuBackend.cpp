//===- GpuBackend.cpp - measuring on a GPU --------------------------------===//
#include "GpuBackend.h"
#include "Finalists.h"
#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/StopWatch.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <unistd.h>

using namespace optiml;

// What is gained must be worth a rewritten kernel: a smaller gain than this is left to the original.
static constexpr double leastGain = 1.02;
// Predictions are beside the point where variants are measured, and some blocks in double precision are enough.
static constexpr double traceSeconds = 8, sampleSeconds = 8;
// A tool of compute-sanitizer has the time that is left, within these limits; a part of the least may go into
// verifying.
static constexpr double leastSanitizerSeconds = 2, mostSanitizerSeconds = 60;
// The final race: so much of the time that is left for settling, and its limits.
static constexpr double raceShare = 0.3, leastRaceSeconds = 0.5, mostRaceSeconds = 3;
// Looking for races in one launch of a variant, on the emulator: of the search's time, and its limits.
static constexpr double racesShare = 0.05, leastRacesSeconds = 0.5, mostRacesSeconds = 2;
static constexpr size_t shownCandidates = 5; // in the trajectory
// All of settling, most of which goes on beside the search: what is kept for it, the least, and the most that it has.
static constexpr double settlingSeconds = 3, leastSettlingSeconds = 1, mostSettlingSeconds = 120;
// Where more time than that is left, the winner is profiled, unless it has been.
static constexpr std::chrono::seconds describing{3};

void GpuBackend::tellGain(double seconds, const Variant &variant, double speedup, bool isVerified) {
  std::lock_guard lock(mutex);
  if (isVerified && verified)
    verified(variant);
  if (std::exchange(told[isVerified], true))
    return;
  llvm::errs() << llvm::formatv("{0}optiml-clang: after {1:f1} s a variant is {2:f2} times as fast, {3}\n",
                                isatty(2) ? "\r\x1b[K" : "", seconds, speedup,
                                isVerified ? "measured and verified" : "measured; it is being verified");
}

llvm::Expected<Evaluator *> GpuBackend::evaluator(const SearchTask &task) {
  GpuEvaluatorOptions options;
  CpuEvaluatorOptions &common = options.common;
  common.toolchain = task.toolchain;
  common.compile = task.options;
  common.path = task.path;
  common.text = task.text;
  common.gpu = &gpu;
  common.device = DeviceText::of(*task.device);
  common.performance = captured;
  common.verification = emulated.otherSizes;
  if (isSmall(captured))
    common.verification.push_back(captured);
  common.verify = verifyOptions(task);
  common.traceSeconds = std::min(traceSeconds, task.share(preparingShare));
  common.sizedKernels = sizedKernels(*task.device, captured, emulated.otherSizes);
  common.derivingSeconds = std::min(otherSizesSeconds, 2 * task.share(preparingShare));
  options.setUpSeconds = task.deadline->remaining();
  options.sampleSeconds = std::min(sampleSeconds, task.share(preparingShare));
  options.profileSeconds = task.share(preparingShare);
  // The GPU compares every launch; the emulator adds races, bounds and odd sizes where they cost little.
  common.verify.affordableSeconds = 0.5;
  common.verify.raceSeconds = std::clamp(task.share(racesShare), leastRacesSeconds, mostRacesSeconds);
  common.verify.orders = 1; // another one with made-up inputs, and the GPU's own
  common.verify.comparedElsewhere = true;
  common.verify.jobs = task.jobs();
  options.gained = [this, began = task.began](const Variant &variant, double speedup, bool isVerified) {
    tellGain(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), variant, speedup,
             isVerified);
  };
  if (compiled.valid()) {
    auto compiledOriginal = compiled.get();
    if (!compiledOriginal)
      return compiledOriginal.takeError();
    options.compiler = std::move(compiledOriginal->compiler);
    options.original = std::move(compiledOriginal->text);
  }
  options.cold = task.flags.coldCache;
  options.profiler = task.flags.profiler == "none"  ? Profiler::None
                     : task.flags.profiler == "ncu" ? Profiler::NsightCompute
                                                    : Profiler::Cupti;
  if (llvm::Error e = GpuEvaluator::create(std::move(options), *pool).moveInto(own))
    return std::move(e);
  return own.get();
}

/// What is verified when the search ends, the final race, compute-sanitizer, and the whole program.
double GpuBackend::concludingSeconds(bool withLoops) const {
  // Of programs that are built beside the search, and of one that has its winner, too.
  const double loops = withLoops ? 5 * run.seconds + buildSeconds() : 0;
  return settlingSeconds + loops + checkingSeconds();
}

void GpuBackend::configure(SearchSettings &settings) const {
  settings.screen = 0;       // measuring costs no more than predicting
  settings.verifyWithin = 0; // and tells more
  settings.batch = 16;       // compilers at work while the GPU measures
  settings.flows = true;
  settings.firstTogether = 8;
  settings.margin = 1;                                 // settle() decides
  settings.top = std::numeric_limits<unsigned>::max(); // those that are verified may be far behind
}

/// What compute-sanitizer says of a candidate.
bool GpuBackend::isClean(const Candidate &candidate, double seconds) {
  SanitizerReport report = own->sanitize(*candidate.variant, seconds);
  llvm::append_range(remarks, report.notes);
  return report.clean;
}

void GpuBackend::addFacts(nlohmann::json &summary) const {
  summary["measured"] = true;
  summary["driver"] = pool->device().driver;
  summary["gpuAnswers"] = pool->answers();
  summary["workerRestarts"] = pool->restarts();
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelTime &k : run.times.kernels)
    kernels.push_back({{"kernel", k.name}, {"launches", k.launches}, {"seconds", k.seconds}});
  summary["programKernels"] = kernels;
}

/// For the summary.
static nlohmann::json listOf(const std::vector<Verification> &verifications) {
  nlohmann::json all = nlohmann::json::array();
  for (const Verification &v : verifications)
    all.push_back({{"recipe", recipeText(v.recipe)},
                   {"verdict", verdictName(v.verdict)},
                   {"why", v.why},
                   {"seconds", v.seconds}});
  return all;
}

/// How the winner was compared, for the summary.
static void addVerified(const std::map<std::string, double> &counters, nlohmann::json &summary) {
  auto counted = [&](const char *name) { return counters.count(name) ? unsigned(counters.at(name)) : 0; };
  if (!counters.count("emulated"))
    summary["otherSizes"] = nlohmann::json::array(); // which its conditions leave to the original
  summary["verified"] =
      llvm::formatv("{0} launches compared with the original in {1} runs on {2}the GPU", counted("verify.launches"),
                    counted("verify.runs"), counters.count("emulated") ? "the CPU emulator and " : "")
          .str();
}

void GpuBackend::tellFinalists(const std::vector<Candidate> &best) {
  std::lock_guard lock(mutex);
  for (const Candidate &candidate : llvm::reverse(best)) // what is asked for last is built first
    if (verified)
      verified(*candidate.variant);
}

void GpuBackend::settle(const SearchTask &task, SearchResult &result, nlohmann::json &summary) {
  addFacts(summary);
  std::vector<Candidate> all = result.top;
  result.top.resize(std::min(result.top.size(), shownCandidates));
  if (!result.improved)
    return own->abandon();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  double left = mostSettlingSeconds;
  if (task.flags.budget.seconds > 0)
    left = std::clamp(task.leftOf(1) - checkingSeconds(), leastSettlingSeconds, mostSettlingSeconds);
  auto seconds = [](double s) { return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s)); };
  const Clock::time_point end = now + seconds(left);
  StopWatch watch;
  double raceSeconds = std::clamp(raceShare * left, leastRaceSeconds, mostRaceSeconds);
  // Of what compute-sanitizer has in any case, verifying something much faster is the better use.
  const Clock::time_point last = end + seconds(leastSanitizerSeconds);
  own->close(end - seconds(raceSeconds), last - seconds(raceSeconds));
  summary["verifications"] = listOf(own->verifications());
  watch.lap("verify");
  const std::vector<Candidate> best =
      finalists(std::move(all), result.best, [&](const Variant &variant) { return own->isVerified(variant); });
  tellFinalists(best);
  std::vector<std::pair<const Variant *, Measurement>> entries;
  for (const Candidate &candidate : best)
    entries.push_back({candidate.variant.get(), candidate.measurement});
  FinalRace race = own->race(entries, raceSeconds);
  watch.lap("race");
  llvm::append_range(result.notes, race.notes);
  result.best = result.baseline;
  result.improved = false;
  // Of those as fast as the fastest, the simplest first.
  double limit = 0.98 * race.fastest();
  std::stable_sort(race.runners.begin(), race.runners.end(), [&](const auto &a, const auto &b) {
    bool fastA = a.speedup >= limit, fastB = b.speedup >= limit;
    if (fastA != fastB)
      return fastA;
    size_t lengthA = best[a.candidate].recipe.size(), lengthB = best[b.candidate].recipe.size();
    return fastA && lengthA != lengthB ? lengthA < lengthB : a.speedup > b.speedup;
  });
  for (const FinalRace::Runner &runner : race.runners) {
    const Candidate &candidate = best[runner.candidate];
    if (!(runner.low > 1 && runner.speedup >= leastGain) || !runner.measurement.guardrails.empty()) {
      result.notes.push_back(
          llvm::formatv("in the final race '{0}' was {1:f2} times as fast ({2:f2} to {3:f2}): no sure gain",
                        recipeText(candidate.recipe), runner.speedup, runner.low, runner.high));
      continue;
    }
    if (Clock::now() + describing < end)
      own->describe(*candidate.variant);
    Measurement closer = own->confirm(*candidate.variant);
    if (!closer.correct()) {
      result.notes.push_back(
          llvm::formatv("'{0}' was measured, but is not verified: {1}", recipeText(candidate.recipe), closer.why));
      continue;
    }
    auto until = [now = Clock::now()](Clock::time_point t) { return std::chrono::duration<double>(t - now).count(); };
    const double remaining = std::max(until(end), std::min(leastSanitizerSeconds, until(last)));
    if (!isClean(candidate, std::clamp(remaining, leastSanitizerSeconds / 4, mostSanitizerSeconds)))
      continue;
    watch.lap("sanitize");
    for (const auto &[step, seconds] : watch.steps)
      summary["settleSeconds"][step] = seconds;
    result.best = candidate;
    result.best.measurement = runner.measurement;
    result.best.measurement.provisional = false;
    result.best.measurement.counters.insert(closer.counters.begin(), closer.counters.end());
    if (closer.counters.count("profile_seconds"))
      result.best.measurement.bottleneck = closer.bottleneck;
    result.improved = true;
    summary["speedup"] = runner.speedup;
    summary["speedupLow"] = runner.low;
    summary["speedupHigh"] = runner.high;
    addVerified(closer.counters, summary);
    return;
  }
}

std::vector<std::string> GpuBackend::notes() const {
  std::vector<std::string> all = remarks;
  if (own)
    llvm::append_range(all, own->notes());
  return all;
}

llvm::Expected<ChosenBackend> optiml::chooseBackend(BackendChoice choice, const Toolchain &toolchain,
                                                    CompileOptions &options, const std::vector<std::string> *building,
                                                    const std::atomic<bool> *cancel) {
  std::string why = "asked for";
  if (choice != BackendChoice::Cpu) {
    auto gpu = makeGpuBackend(toolchain, options, building, cancel);
    if (gpu)
      return ChosenBackend{std::move(*gpu), ""};
    why = llvm::toString(gpu.takeError());
    if (choice == BackendChoice::Gpu)
      return makeError("no GPU can be used: {0}", why);
  }
  return ChosenBackend{makeCpuBackend(options.arch), why};
}

llvm::Expected<std::unique_ptr<Backend>> optiml::makeGpuBackend(const Toolchain &toolchain, CompileOptions &options,
                                                                const std::vector<std::string> *building,
                                                                const std::atomic<bool> *cancel) {
  std::unique_ptr<EarlyBuild> early = building ? EarlyBuild::start(toolchain, *building, cancel) : nullptr;
  WorkerPoolOptions pool;
  pool.command = WorkerPool::workerCommand(toolchain.libDir + "/../bin");
  pool.cancel = cancel;
  auto made = WorkerPool::create(std::move(pool));
  if (!made)
    return made.takeError();
  const gpu::DeviceInfo &device = (*made)->device();
  options.runOn(device.arch);
  const GpuSpec *spec = GpuSpec::findOn(device.name);
  return std::make_unique<GpuBackend>(std::move(*made), spec ? *spec : GpuSpec::forArch(device.arch), std::move(early));
}
