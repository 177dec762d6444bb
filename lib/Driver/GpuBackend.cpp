//===- GpuBackend.cpp - measuring on a GPU --------------------------------===//
#include "Backend.h"
#include "EarlyBuild.h"
#include "Finalists.h"
#include "GpuProgram.h"
#include "Workloads.h"
#include "optiml/Evaluate/Measure/GpuEvaluator.h"
#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/StopWatch.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <future>
#include <mutex>
#include <regex>
#include <unistd.h>

using namespace optiml;

// A kernel with less than this share of the GPU's time is not worth a search.
static constexpr double leastShare = 0.01;
// What is gained must be worth a rewritten kernel: a smaller gain than this is left to the original.
static constexpr double leastGain = 1.02;
// Odd sizes run on the emulator only if that is a matter of seconds.
static constexpr double otherSizeSeconds = 5, otherSizesSeconds = 60;
// Predictions are beside the point where variants are measured, and some blocks in double precision are enough.
static constexpr double traceSeconds = 8, sampleSeconds = 8;
// Each of these, and the original's profile, takes so much of the search's time at most.
static constexpr double preparingShare = 0.1;
// A tool of compute-sanitizer has the time that is left, within these limits.
static constexpr double leastSanitizerSeconds = 2, mostSanitizerSeconds = 60;
// The final race: so much of the time that is left for settling, and its limits.
static constexpr double raceShare = 0.3, leastRaceSeconds = 0.5, mostRaceSeconds = 3;
static constexpr size_t shownCandidates = 5; // in the trajectory
// All of settling, most of which goes on beside the search: what is kept for it, the least, and the most that it has.
static constexpr double settlingSeconds = 2, leastSettlingSeconds = 1, mostSettlingSeconds = 120;
// Where more time than that is left, the winner is profiled, unless it has been.
static constexpr std::chrono::seconds describing{3};
// A program whose original was not run to its end runs so long at least, or until so much of the budget has passed.
static constexpr double leastCheckSeconds = 1, mostOfBudget = 1.1;

namespace {

class GpuBackend : public Backend {
public:
  GpuBackend(std::unique_ptr<WorkerPool> pool, const GpuSpec &gpu, std::unique_ptr<EarlyBuild> early)
      : pool(std::move(pool)), gpu(gpu), early(std::move(early)) {}
  std::string gpuName() const override { return pool->device().name; }
  unsigned gpuCount() const override { return pool->size(); }
  std::string storeName() const override {
    return llvm::formatv("gpu {0} driver {1}", pool->device().name, pool->device().driver);
  }
  bool measures() const override { return true; }
  bool sawWholeProgram() const override { return !paused; }
  const Workload &performance() const override { return captured; }
  std::vector<const Workload *> exercised() const override { return {&captured}; } // what the GPU compares
  std::vector<std::string> otherSizes() const override { return emulated.arguments; }

  llvm::Error observe(const SearchTask &task) override;
  llvm::Expected<Evaluator *> evaluator(const SearchTask &task) override;
  std::optional<KernelUse> timeOf(const std::string &symbol) const override;
  double roofline() const override { return own ? rooflineOf(own->baseline()) : 0; }
  void configure(SearchSettings &settings) const override;
  void searchUntil(const std::atomic<bool> *ended) override {
    if (own)
      own->compileUntil(ended);
  }
  Measurement examine(const Variant &variant) override {
    own->confirm(variant);
    own->describe(variant);
    return own->confirm(variant);
  }
  void settle(const SearchTask &task, SearchResult &result, nlohmann::json &summary) override;
  llvm::Expected<ProgramTimes> timeProgram(const SearchTask &task, const std::string &emitted,
                                           const std::string &executable) override;
  llvm::Error checkProgram(const SearchTask &task, const std::string &emitted, const std::string &executable,
                           nlohmann::json &summary) override;
  llvm::Expected<std::string> compareCopies(const SearchTask &task, const std::string &executable,
                                            unsigned floatBytes) override {
    return compareGpuCopies(task, original, executable, floatBytes);
  }
  llvm::Expected<std::string> buildProgram(const SearchTask &task, const std::string &emitted, const std::string &name,
                                           const std::atomic<bool> *cancel) const override {
    return buildGpuProgram(task, &emitted, name, cancel);
  }
  void whenVerified(std::function<void(const Variant &)> call) override {
    std::lock_guard lock(mutex);
    verified = std::move(call);
  }
  double concludingSeconds(bool) const override;
  double buildSeconds() const override { return early ? early->seconds : 0; }
  std::vector<std::string> notes() const override;
  std::vector<std::string> originalFaults() const override {
    return own ? own->originalFaults() : std::vector<std::string>();
  }

private:
  std::vector<std::string> worthSearching(const SearchTask &task) const;
  bool isCaptured(const std::string &symbol) const {
    return llvm::any_of(captured.launches, [&](const LaunchImage &launch) { return launch.kernel == symbol; });
  }
  bool isClean(const Candidate &candidate, double seconds);
  /// Of the GPU and the program, for the summary.
  void addFacts(nlohmann::json &summary) const;
  /// Seconds for running the rewritten program, which is built beside the search, and the original once more where that
  /// is needed.
  double checkingSeconds() const { return 0.5 + 1.25 * run.seconds; }
  llvm::Error readRecorded(const SearchTask &task);
  void compileOriginal(const SearchTask &task);
  /// Tells of the first gain that was measured, and of the first that was verified.
  void tellGain(double seconds, const Variant &variant, double speedup, bool isVerified);

  std::unique_ptr<WorkerPool> pool;
  const GpuSpec &gpu;
  std::unique_ptr<EarlyBuild> early;
  std::string original;                    ///< its executable
  GpuRun run;                              ///< of the original
  std::unique_ptr<ObservedProgram> paused; ///< the original, where it has not run to its end
  GpuRun searched;                         ///< of the program whose kernels are searched
  Workload captured;
  CapturedRuns emulated; ///< runs with other sizes, on the emulator
  std::vector<std::string> remarks;
  std::mutex mutex; ///< of what follows
  std::function<void(const Variant &)> verified;
  bool told[2] = {false, false}; ///< a measured gain, a verified one
  struct Compiled {
    std::unique_ptr<TextCompiler> compiler;
    std::shared_ptr<const CompiledText> text;
  };
  std::future<llvm::Expected<Compiled>> compiled; ///< the original's kernels, while the program is observed
  std::unique_ptr<GpuEvaluator> own;
};

} // namespace

std::vector<std::string> GpuBackend::worthSearching(const SearchTask &task) const {
  std::vector<std::string> symbols;
  bool asked = !task.flags.kernel.empty();
  std::regex filter(asked ? task.flags.kernel : ".*", std::regex::extended); // checked when the flag was read
  for (const KernelTime &k : searched.times.kernels)
    if (asked ? std::regex_search(k.name, filter) : k.seconds >= leastShare * searched.times.kernelSeconds)
      symbols.push_back(k.symbol);
  return symbols;
}

std::optional<KernelUse> GpuBackend::timeOf(const std::string &symbol) const {
  if (!(searched.times.kernelSeconds > 0))
    return std::nullopt;
  double seconds = 0;
  for (const KernelTime &k : searched.times.kernels)
    if (sameFunction(k.symbol, symbol))
      seconds += k.seconds;
  return KernelUse{seconds, seconds / searched.times.kernelSeconds};
}

void GpuBackend::compileOriginal(const SearchTask &task) {
  // The task may be gone when it ends.
  auto compile = [&toolchain = task.toolchain, &options = task.options, path = task.path, source = task.text,
                  cancel = task.cancel()]() -> llvm::Expected<Compiled> {
    auto compiler = TextCompiler::create(toolchain, path, options, cancel);
    if (!compiler)
      return compiler.takeError();
    Verdict verdict;
    auto text = (*compiler)->compile(source, verdict);
    if (!text)
      return text.takeError();
    return Compiled{std::move(*compiler), std::move(*text)};
  };
  compiled = std::async(std::launch::async, compile);
}

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

llvm::Error GpuBackend::readRecorded(const SearchTask &task) {
  if (llvm::Error e =
          recordedRuns(task.flags.workloads, task.flags.threads, *task.device, task.folder).moveInto(emulated))
    return e;
  if (const std::string file = task.flags.workloads.front() + "/times.json"; llvm::sys::fs::exists(file))
    if (llvm::Error e = KernelTimes::read(file).moveInto(searched.times))
      return e;
  compileOriginal(task);
  captured = std::exchange(emulated.performance, {});
  return llvm::Error::success();
}

llvm::Error GpuBackend::observe(const SearchTask &task) {
  own.reset(); // of another text, and of another deadline
  if (!task.replaced)
    paused.reset();
  if (task.isRecorded())
    return readRecorded(task);
  compileOriginal(task);
  // The emulator's runs take no GPU: beside those on it.
  auto small = std::async(std::launch::async, [&]() -> llvm::Expected<CapturedRuns> {
    if (!task.readsArguments)
      return CapturedRuns();
    return captureOtherSizes(task.options, task.toolchain, task.changed(), task.flags.programArgs, task.folder,
                             otherSizeSeconds, std::min(otherSizesSeconds, task.share(preparingShare)), task.cancel());
  });
  auto observed = [&]() -> llvm::Error {
    const bool isEarly = !task.replaced && early && early->executable.valid();
    auto built = !task.executable.empty() ? llvm::Expected<std::string>(task.executable)
                 : isEarly                ? early->executable.get()
                                          : buildGpuProgram(task, task.replaced ? &task.text : nullptr, "program-gpu");
    if (!built)
      return built.takeError();
    // Times and launches in one run, as the program may take long. Which kernels matter shows only then.
    std::unique_ptr<ObservedProgram> stopped;
    auto timed = captureGpuProgram(task, *built, task.flags.kernel, task.folder + "/gpu", captured, stopped);
    if (!timed)
      return timed.takeError();
    searched = std::move(*timed);
    if (!task.replaced) {
      original = *built;
      run = searched;
      paused = std::move(stopped);
    }
    if (searched.times.kernels.empty())
      return makeError("the program launches no kernel on the GPU (it ended with exit code {0})", searched.exitCode);
    std::vector<std::string> symbols = worthSearching(task);
    if (symbols.empty())
      return makeError("none of the program's {0} kernels has a match of --optiml-kernel={1}",
                       searched.times.kernels.size(), task.flags.kernel);
    if (llvm::any_of(symbols, [&](const std::string &symbol) { return !isCaptured(symbol); }))
      // Perhaps others have taken the room.
      if (auto again =
              captureGpuProgram(task, *built, expressionFor(symbols), task.folder + "/gpu-again", captured, stopped);
          !again)
        return again.takeError();
    llvm::erase_if(captured.launches,
                   [&](const LaunchImage &launch) { return !llvm::is_contained(symbols, launch.kernel); });
    dropRepeats(captured);
    weighAll(captured, searched.times.kernels);
    for (const std::string &text : captured.leftOut)
      remarks.push_back("not captured: " + text);
    if (captured.launches.empty())
      return makeError("no launch of the program could be captured{0}",
                       captured.leftOut.empty() ? "" : ": " + captured.leftOut.front());
    return nameElements(captured, *task.device);
  }();
  auto runs = small.get();
  if (runs && !observed)
    dropOwnSize(captured, *runs);
  if (runs)
    for (Workload &other : runs->otherSizes)
      if (llvm::Error e = nameElements(other, *task.device))
        observed = llvm::joinErrors(std::move(observed), std::move(e));
  if (runs)
    emulated = std::move(*runs);
  else
    remarks.push_back("no odd sizes are checked on the emulator: " + llvm::toString(runs.takeError()));
  if (observed) // it works with the task
    if (auto text = compiled.get(); !text)
      llvm::consumeError(text.takeError());
  return observed;
}

llvm::Expected<Evaluator *> GpuBackend::evaluator(const SearchTask &task) {
  GpuEvaluatorOptions options;
  CpuEvaluatorOptions &common = options.common;
  common.toolchain = task.toolchain;
  common.compile = task.options;
  common.path = task.path;
  common.text = task.text;
  common.gpu = &gpu;
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
  common.verify.raceSeconds = 2;
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
  const Clock::time_point end = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(left));
  StopWatch watch;
  double raceSeconds = std::clamp(raceShare * left, leastRaceSeconds, mostRaceSeconds);
  own->close(end - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(raceSeconds)));
  summary["verifications"] = listOf(own->verifications());
  watch.lap("verify");
  const std::vector<Candidate> best =
      finalists(std::move(all), result.best, [&](const Variant &variant) { return own->isVerified(variant); });
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
    const double remaining = std::chrono::duration<double>(end - Clock::now()).count();
    if (!isClean(candidate, std::clamp(remaining, leastSanitizerSeconds, mostSanitizerSeconds)))
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
    const std::map<std::string, double> &counters = closer.counters;
    auto counted = [&](const char *name) { return counters.count(name) ? unsigned(counters.at(name)) : 0; };
    if (!counters.count("emulated"))
      summary["otherSizes"] = nlohmann::json::array(); // which its conditions leave to the original
    summary["verified"] =
        llvm::formatv("{0} launches compared with the original in {1} runs on {2}the GPU", counted("verify.launches"),
                      counted("verify.runs"), counters.count("emulated") ? "the CPU emulator and " : "")
            .str();
    return;
  }
}

llvm::Expected<ProgramTimes> GpuBackend::timeProgram(const SearchTask &task, const std::string &emitted,
                                                     const std::string &executable) {
  if (paused)
    return makeError("the program takes too long to be timed as a whole");
  auto built = executable.empty() ? buildGpuProgram(task, &emitted, "program-launches")
                                  : llvm::Expected<std::string>(executable);
  if (!built)
    return built.takeError();
  return timeBesides(task, {original, run, 0}, *built);
}

llvm::Error GpuBackend::checkProgram(const SearchTask &task, const std::string &emitted, const std::string &executable,
                                     nlohmann::json &summary) {
  if (task.isRecorded())
    return llvm::Error::success();
  auto built = executable.empty() ? buildGpuProgram(task, &emitted, "program-optimized")
                                  : llvm::Expected<std::string>(executable);
  if (!built)
    return built.takeError();
  if (paused)
    return comparePausedProgram(task, *paused, *built, std::max(leastCheckSeconds, task.leftOf(mostOfBudget)), summary);
  return compareGpuPrograms(task, {original, run, own->baseline().time.seconds}, *built, summary);
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
