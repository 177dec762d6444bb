//===- GpuEvaluator.cpp - evaluating variants on a GPU --------------------===//
#include "optiml/Evaluate/GpuEvaluator.h"
#include "GpuCases.h"
#include "VerifyPlan.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/PerformanceModel.h"
#include "optiml/Evaluate/Reward.h"
#include "optiml/Gpu/Counters.h"
#include "optiml/Gpu/NsightCompute.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/StopWatch.h"
#include "optiml/Support/Subprocess.h"
#include <chrono>
#include <future>
#include <mutex>
#include <set>

using namespace optiml;
using namespace optiml::gpu;

struct GpuEvaluator::Impl {
  GpuEvaluatorOptions options;
  WorkerPool &pool;
  const GpuSpec *gpu = nullptr;
  TempDir dir;
  std::unique_ptr<TextCompiler> compiler;
  std::shared_ptr<const CompiledText> originalText; ///< a worker that is started again loads it again
  std::unique_ptr<CpuEvaluator> cpu;                ///< null: the emulator cannot run this program
  Measurement baselineMeasurement;
  std::vector<double> weights;
  std::vector<double> launchSeconds; ///< of the original, by launch; 0: not timed
  std::vector<uint64_t> writtenBytes;
  std::set<std::string> remarks;
  double best = 0; ///< seconds of the fastest correct variant so far
  bool profiles = true;
  std::mutex mutex;
  std::atomic<unsigned> counter{0};
  std::atomic<std::chrono::steady_clock::time_point> beginBy = std::chrono::steady_clock::time_point::max();

  Impl(TempDir dir, WorkerPool &pool) : pool(pool), dir(std::move(dir)) {}
  llvm::Error start();
  llvm::Expected<std::vector<PrepareRequest>> prepareRequests(const CompiledText &original);
  llvm::Expected<CandidateRequest> candidateOf(const Variant &variant, const CompiledText &compiled, double &occupancy);
  Measurement measure(const Variant &variant, StopWatch &watch);
  /// Fills times from a reply; false (and the verdict) when they cannot be.
  bool addTimes(const CandidateReply &reply, Measurement &m);
  CandidateRequest profiledPart(const CandidateRequest &candidate) const;
  void addProfile(const CandidateRequest &whole, Measurement &m);
  bool profileByNcu(const std::string &cubin, const PlannedLaunch &launch, RawCounters &raw, std::string &why);
  void addPrediction(const Variant &variant, const CompiledText &compiled, Measurement &m);
  double allowedSeconds() const;
  void note(const std::string &text) {
    std::lock_guard lock(mutex);
    remarks.insert(text);
  }
};

GpuEvaluator::GpuEvaluator() = default;
GpuEvaluator::~GpuEvaluator() = default;
const Measurement &GpuEvaluator::baseline() const { return impl->baselineMeasurement; }

std::vector<std::string> GpuEvaluator::originalFaults() const {
  return impl->cpu ? impl->cpu->originalFaults() : std::vector<std::string>();
}

std::vector<std::string> GpuEvaluator::notes() const {
  std::lock_guard lock(impl->mutex);
  std::vector<std::string> all(impl->remarks.begin(), impl->remarks.end());
  if (impl->cpu)
    for (std::string &note : impl->cpu->notes())
      all.push_back(std::move(note));
  return all;
}

static Measurement failed(Verdict verdict, std::string why) {
  Measurement m;
  m.verdict = verdict;
  m.why = std::move(why);
  m.time.predicted = false;
  return m;
}

llvm::Expected<std::unique_ptr<GpuEvaluator>> GpuEvaluator::create(GpuEvaluatorOptions options, WorkerPool &pool) {
  auto dir = TempDir::create("optiml-gpu");
  if (!dir)
    return dir.takeError();
  std::unique_ptr<GpuEvaluator> evaluator(new GpuEvaluator);
  evaluator->impl = std::make_unique<Impl>(std::move(*dir), pool);
  evaluator->impl->options = std::move(options);
  if (llvm::Error e = evaluator->impl->start())
    return std::move(e);
  return evaluator;
}

llvm::Expected<std::vector<PrepareRequest>> GpuEvaluator::Impl::prepareRequests(const CompiledText &original) {
  CpuEvaluatorOptions &o = options.common;
  std::string shadow = dir.file("shadow.so");
  if (llvm::Error e = emu::buildReplayModule(o.path, o.text, o.compile, o.toolchain, emu::ModeShadow, shadow)) {
    note("results on the GPU are compared with a general tolerance: " + llvm::toString(std::move(e)));
    shadow.clear();
  }
  VerifyOptions verify = o.verify;
  verify.replayProgram = replayProgramOf(o.toolchain);
  GpuCases cases(o.performance, verify, shadow, dir.path(), options.sampleSeconds);
  std::vector<PrepareRequest> alternatives;
  for (bool careful : {false, true}) {
    PrepareRequest request;
    request.cubin = original.cubin;
    request.careful = careful;
    request.cold = options.cold;
    auto made = cases.ofAllLaunches(careful ? FreshIntegers::Keep : FreshIntegers::Shuffle);
    if (!made)
      return made.takeError();
    request.cases = std::move(*made);
    alternatives.push_back(std::move(request));
  }
  for (const std::string &text : cases.notes())
    note(text);
  return alternatives;
}

llvm::Error GpuEvaluator::Impl::start() {
  StopWatch watch;
  CpuEvaluatorOptions &o = options.common;
  gpu = o.gpu ? o.gpu : &GpuSpec::forArch(o.compile.arch);
  auto made = TextCompiler::create(o.toolchain, o.path, o.compile, o.verify.cancel);
  if (!made)
    return made.takeError();
  compiler = std::move(*made);
  o.warmL2 = !options.cold;
  // What the emulator does takes no GPU and long.
  auto emulated = std::async(std::launch::async, [copy = o] { return CpuEvaluator::create(copy); });
  Verdict verdict;
  auto original = compiler->compile(o.text, verdict);
  auto alternatives = original ? prepareRequests(**original) : std::vector<PrepareRequest>();
  auto evaluator = emulated.get();
  if (evaluator)
    cpu = std::move(*evaluator);
  else
    note(
        "the emulator does not run this program, so nothing is predicted and variants are compared on the GPU alone: " +
        llvm::toString(evaluator.takeError()));
  if (!original)
    return llvm::joinErrors(original.takeError(), alternatives.takeError());
  if (!alternatives)
    return alternatives.takeError();
  originalText = *original;
  watch.lap("cost.prepare");
  LoadRequest load{o.performance.directory, o.verify.seed};
  std::vector<std::string> setUpNotes;
  auto prepared = pool.setUp(load, *alternatives, setUpNotes, options.setUpSeconds);
  if (!prepared)
    return prepared.takeError();
  watch.lap("cost.setup");
  for (const auto *list : {&setUpNotes, &prepared->notes})
    for (const std::string &text : *list)
      note(text);
  launchSeconds.assign(o.performance.launches.size(), 0);
  writtenBytes.assign(o.performance.launches.size(), 0);
  for (const PreparedLaunch &launch : prepared->launches) {
    launchSeconds[launch.launch] = launch.seconds;
    writtenBytes[launch.launch] = launch.writtenBytes;
  }
  Measurement &base = baselineMeasurement;
  CandidateRequest identity;
  identity.cubin = (*original)->cubin;
  double heaviest = 0;
  for (unsigned i = 0; i < o.performance.launches.size(); ++i) {
    const LaunchImage &launch = o.performance.launches[i];
    weights.push_back(launch.weight);
    base.time.perLaunch.push_back(launchSeconds[i]);
    base.time.seconds += launch.weight * launchSeconds[i];
    if (launchSeconds[i] == 0)
      continue;
    ConcretePlan plan = identityPlan(launch, launch.kernel);
    identity.launches.push_back({i, plan.scratch, plan.steps});
    const Resources *resources = (*original)->resourcesOf(launch.kernel);
    if (resources && launch.weight * launchSeconds[i] > heaviest) {
      heaviest = launch.weight * launchSeconds[i];
      base.resources = *resources;
      base.resources.occupancy =
          computeOccupancy(*gpu, *resources, launch.block[0] * launch.block[1] * launch.block[2], launch.sharedBytes)
              .share;
    }
  }
  if (!(base.time.seconds > 0)) {
    std::string why = "no captured launch can be replayed on the GPU";
    for (const std::string &text : prepared->unusable)
      if (!text.empty())
        return makeError("{0}: {1}", why, text);
    return makeError("{0}", why);
  }
  base.verdict = Verdict::Correct;
  base.time.predicted = false;
  if (cpu) {
    base.counters = cpu->baseline().counters;
    base.counters["predicted_seconds"] = cpu->baseline().time.seconds;
    base.counters["roofline"] *= cpu->baseline().time.seconds / base.time.seconds;
    base.bottleneck = cpu->baseline().bottleneck;
  }
  addProfile(identity, base);
  watch.lap("cost.profile");
  for (const auto &[step, seconds] : watch.steps)
    base.counters[step] = seconds;
  score(base, base, weights);
  best = base.time.seconds;
  return llvm::Error::success();
}

llvm::Expected<CandidateRequest> GpuEvaluator::Impl::candidateOf(const Variant &variant, const CompiledText &compiled,
                                                                 double &occupancy) {
  CandidateRequest request;
  request.cubin = compiled.cubin;
  const Workload &workload = options.common.performance;
  occupancy = 1;
  for (unsigned i = 0; i < workload.launches.size(); ++i)
    for (const KernelRewrite &rewrite : variant.rewrites) {
      if (rewrite.originalSymbol != workload.launches[i].kernel || launchSeconds[i] == 0)
        continue;
      auto plan = concretePlan(rewrite, workload.launches[i]);
      if (!plan) { // the original runs there
        if (llvm::Error rest = llvm::handleErrors(plan.takeError(), [](const NotApplicable &) {}))
          return std::move(rest);
        continue;
      }
      for (emu::ReplayStep &step : plan->steps) {
        std::string symbol = compiled.symbolOf(step.kernel);
        if (symbol.empty())
          return makeError("ptxas reports nothing for kernel '{0}'", step.kernel);
        const Resources &resources = compiled.ptxas.at(symbol);
        Occupancy o =
            computeOccupancy(*gpu, resources, step.block[0] * step.block[1] * step.block[2], step.sharedBytes);
        occupancy = std::min(occupancy, o.share);
        step.kernel = symbol;
      }
      request.launches.push_back({i, plan->scratch, plan->steps});
    }
  return request;
}

/// Everything one candidate may need: restoring, runs, checks and rounds, on a GPU that may be slow at first.
double GpuEvaluator::Impl::allowedSeconds() const {
  double sum = 0;
  for (double s : launchSeconds)
    sum += s;
  return 60 + 400 * sum;
}

static Verdict verdictOf(const std::string &name) { return verdictFromName(name).value_or(Verdict::RuntimeError); }

bool GpuEvaluator::Impl::addTimes(const CandidateReply &reply, Measurement &m) {
  const Workload &workload = options.common.performance;
  m.time.predicted = false;
  m.time.perLaunch = launchSeconds;
  std::vector<double> slowest = launchSeconds, fastest = launchSeconds;
  double rounds = 0;
  for (const LaunchTiming &t : reply.times) {
    if (t.launch >= launchSeconds.size() || !(t.ratio > 0) || !(t.low > 0)) {
      m = failed(Verdict::RuntimeError, "the GPU worker's times make no sense");
      return false;
    }
    // The ratio is of runs side by side; the original's own time is the same for all variants.
    m.time.perLaunch[t.launch] = launchSeconds[t.launch] / t.ratio;
    slowest[t.launch] = launchSeconds[t.launch] / t.low;
    fastest[t.launch] = launchSeconds[t.launch] / t.high;
    rounds = std::max(rounds, double(t.rounds));
    double floor = double(writtenBytes[t.launch]) / std::max(gpu->l2BytesPerSecond, gpu->dramBytesPerSecond);
    if (m.time.perLaunch[t.launch] < floor) {
      m = failed(Verdict::RuntimeError,
                 llvm::formatv("the measured {0:f2} us are less than the {1:f2} us that writing its results takes: an "
                               "error of the measurement, or it leaves results out",
                               m.time.perLaunch[t.launch] * 1e6, floor * 1e6)
                     .str());
      return false;
    }
  }
  double low = 0, high = 0;
  for (unsigned i = 0; i < launchSeconds.size(); ++i) {
    m.time.seconds += workload.launches[i].weight * m.time.perLaunch[i];
    low += workload.launches[i].weight * slowest[i];
    high += workload.launches[i].weight * fastest[i];
  }
  m.counters["speedup.low"] = baselineMeasurement.time.seconds / low;
  m.counters["speedup.high"] = baselineMeasurement.time.seconds / high;
  m.counters["rounds"] = rounds;
  return true;
}

void GpuEvaluator::Impl::addPrediction(const Variant &variant, const CompiledText &compiled, Measurement &m) {
  if (!cpu)
    return;
  Measurement predicted = cpu->predict(variant, compiled);
  if (predicted.verdict != Verdict::Predicted)
    return;
  for (const auto &[name, value] : predicted.counters)
    m.counters.emplace(name, value);
  m.counters["predicted_seconds"] = predicted.time.seconds;
  if (predicted.counters.count("roofline"))
    m.counters["roofline"] = predicted.counters["roofline"] * predicted.time.seconds / m.time.seconds;
  m.bottleneck = predicted.bottleneck;
}

/// Nsight Compute on a worker that replays the launch.
bool GpuEvaluator::Impl::profileByNcu(const std::string &cubin, const PlannedLaunch &launch, RawCounters &raw,
                                      std::string &why) {
  unsigned number = counter++;
  std::string job = dir.file("ncu" + std::to_string(number) + ".json");
  emu::ReplayJob replay;
  replay.module = cubin;
  replay.workload = options.common.performance.directory;
  replay.launch = launch.launch;
  replay.scratch = launch.scratch;
  replay.steps = launch.steps;
  if (!emu::writeJob(replay, job, why))
    return false;
  NcuOptions ncu;
  ncu.program = WorkerPool::workerCommand(options.common.toolchain.libDir + "/../bin");
  ncu.program.insert(ncu.program.end(), {"--replay", job});
  ncu.logFile = dir.file("ncu" + std::to_string(number) + ".csv");
  std::string own = options.common.toolchain.cudaPath + "/bin/ncu";
  if (!findOnPath(own).empty())
    ncu.ncu = own;
  ProcessOptions process;
  process.limits.seconds = 120;
  process.limits.outputBytes = 1 << 20;
  process.env["LC_ALL"] = "C";
  process.cancel = options.common.verify.cancel;
  auto result = runProcess(ncuCommand(ncu), process);
  if (!result) {
    why = llvm::toString(result.takeError());
    return false;
  }
  std::string text;
  if (auto log = readFile(ncu.logFile))
    text = *log;
  else
    llvm::consumeError(log.takeError());
  std::vector<NcuKernel> kernels;
  if (!parseNcuCsv(text.empty() ? result->out + result->err : text, kernels, why)) {
    if (!result->ok())
      why += " (ncu " + result->describe() + ")";
    return false;
  }
  raw = combine(kernels);
  return true;
}

/// Of each kernel the few launches that take most of its time; a profile of hundreds tells no more, and takes seconds.
CandidateRequest GpuEvaluator::Impl::profiledPart(const CandidateRequest &candidate) const {
  static constexpr unsigned mostOfAKernel = 4;
  const std::vector<LaunchImage> &launches = options.common.performance.launches;
  std::vector<const PlannedLaunch *> order;
  for (const PlannedLaunch &planned : candidate.launches)
    order.push_back(&planned);
  auto time = [&](const PlannedLaunch *p) { return launches[p->launch].weight * launchSeconds[p->launch]; };
  std::stable_sort(order.begin(), order.end(), [&](auto *a, auto *b) { return time(a) > time(b); });
  std::map<std::string, unsigned> taken;
  CandidateRequest part;
  part.cubin = candidate.cubin;
  for (const PlannedLaunch *planned : order)
    if (taken[launches[planned->launch].kernel]++ < mostOfAKernel)
      part.launches.push_back(*planned);
  return part;
}

// A kernel runs about so often while its counters are read: passes, and what CUPTI runs beside them.
static constexpr double profileRuns = 15;

void GpuEvaluator::Impl::addProfile(const CandidateRequest &whole, Measurement &m) {
  if (!profiles || options.profiler == Profiler::None)
    return;
  CandidateRequest candidate = profiledPart(whole);
  double seconds = 0;
  for (const PlannedLaunch &launch : candidate.launches)
    seconds += profileRuns * launchSeconds[launch.launch];
  if (seconds > options.profileSeconds) {
    note(llvm::formatv("no hardware counters where reading them would take some {0:f0} s", seconds));
    return;
  }
  auto start = std::chrono::steady_clock::now();
  std::string why;
  std::vector<RawCounters> all;
  if (options.profiler == Profiler::NsightCompute) {
    for (const PlannedLaunch &launch : candidate.launches)
      if (RawCounters raw; why.empty() && profileByNcu(candidate.cubin, launch, raw, why))
        all.push_back(std::move(raw));
  } else {
    auto reply = pool.profile({candidate}, 60 + allowedSeconds());
    why = reply ? reply->why : llvm::toString(reply.takeError());
    if (reply)
      for (const RawCounters &raw : reply->launches)
        if (!raw.empty())
          all.push_back(raw);
  }
  if (!why.empty()) {
    profiles = false;
    note("no hardware counters: " + why);
    return;
  }
  KernelCounters diagnosed = diagnose(combine(all));
  for (const auto &[name, value] : diagnosed.counters)
    m.counters[name] = value;
  m.counters["profile_seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!diagnosed.bottleneck.empty())
    m.bottleneck = diagnosed.bottleneck;
}

Measurement GpuEvaluator::Impl::measure(const Variant &variant, StopWatch &watch) {
  Verdict verdict;
  auto compiled = compiler->compile(variant.text, verdict);
  if (!compiled)
    return failed(verdict, llvm::toString(compiled.takeError()));
  watch.lap("cost.compile");
  double occupancy;
  auto candidate = candidateOf(variant, **compiled, occupancy);
  if (!candidate)
    return failed(Verdict::RuntimeError, llvm::toString(candidate.takeError()));
  if (candidate->launches.empty())
    return failed(Verdict::NotApplicable, "its conditions hold for no captured launch");
  Measurement m;
  m.verdict = Verdict::Correct;
  // Races, bounds and odd sizes are seen in the emulator only.
  if (cpu && !options.common.verification.empty()) {
    cpu->verify(variant, m);
    watch.lap("cost.emulator");
    if (m.counters["verify.launches"] > 0)
      m.counters["emulated"] = 1;
    if (m.verdict != Verdict::Correct && m.verdict != Verdict::NotApplicable)
      return failed(m.verdict, m.why);
  }
  EvaluateRequest request;
  request.candidates = {*candidate};
  {
    std::lock_guard lock(mutex);
    // Far from the best already: a rough figure will do.
    request.hopeless = best > 0 ? 0.5 * baselineMeasurement.time.seconds / best : 0;
  }
  auto evaluated = pool.evaluate(request, allowedSeconds(), beginBy);
  watch.lap("cost.gpu");
  if (!evaluated)
    return failed(Verdict::RuntimeError, llvm::toString(evaluated.takeError()));
  const EvaluateReply &reply = evaluated->reply;
  if (reply.candidates.size() != 1)
    return failed(evaluated->timedOut ? Verdict::Timeout : Verdict::RuntimeError, reply.why);
  const CandidateReply &own = reply.candidates[0];
  if (own.verdict != verdictName(Verdict::Correct))
    return failed(verdictOf(own.verdict), own.why);
  if (!reply.why.empty())
    return failed(Verdict::RuntimeError, reply.why);
  m.verdict = Verdict::Correct;
  m.counters["verify.launches"] += own.launches;
  m.counters["verify.runs"] += own.runs;
  if (!addTimes(own, m))
    return m;
  for (const KernelRewrite &rewrite : variant.rewrites)
    if (const Resources *resources =
            (*compiled)->resourcesOf(rewrite.plan.steps.empty() ? rewrite.twin : rewrite.plan.steps[0].kernel)) {
      Resources &worst = m.resources;
      worst.registers = std::max(worst.registers, resources->registers);
      worst.staticShared = std::max(worst.staticShared, resources->staticShared);
      worst.spillLoads += resources->spillLoads;
      worst.spillStores += resources->spillStores;
    }
  m.resources.occupancy = occupancy;
  bool leads;
  {
    std::lock_guard lock(mutex);
    leads = m.time.seconds < best;
    best = std::min(best, m.time.seconds);
  }
  if (leads) { // worth a closer look
    addPrediction(variant, **compiled, m);
    addProfile(*candidate, m);
    watch.lap("cost.profile");
  } else { // the reward compares like with like
    const Measurement &base = baselineMeasurement;
    for (const char *name : {"sector_efficiency", "bank_conflicts_per_request", "roofline"})
      if (auto it = base.counters.find(name); it != base.counters.end())
        m.counters[name] = it->second;
    if (m.counters.count("roofline"))
      m.counters["roofline"] *= base.time.seconds / m.time.seconds;
    m.bottleneck = base.bottleneck;
  }
  score(m, baselineMeasurement, weights);
  return m;
}

Measurement GpuEvaluator::evaluate(const Variant &variant, Fidelity fidelity) {
  if (variant.rewrites.empty())
    return impl->baselineMeasurement;
  auto start = std::chrono::steady_clock::now();
  StopWatch watch;
  Measurement m =
      fidelity == Fidelity::Model && impl->cpu ? impl->cpu->evaluate(variant, fidelity) : impl->measure(variant, watch);
  for (const auto &[step, seconds] : watch.steps)
    m.counters[step] = seconds;
  m.cost = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return m;
}

void GpuEvaluator::beginNothingAfter(std::chrono::steady_clock::time_point time) { impl->beginBy = time; }

double FinalRace::fastest() const {
  double most = 0;
  for (const Runner &runner : runners)
    most = std::max(most, runner.speedup);
  return most;
}

FinalRace GpuEvaluator::race(const std::vector<std::pair<const Variant *, Measurement>> &candidates) {
  FinalRace result;
  EvaluateRequest request;
  std::vector<size_t> running;
  std::vector<std::shared_ptr<const CompiledText>> texts;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Verdict verdict;
    auto compiled = impl->compiler->compile(candidates[i].first->text, verdict);
    if (!compiled) {
      result.notes.push_back(llvm::toString(compiled.takeError()));
      continue;
    }
    double occupancy;
    auto own = impl->candidateOf(*candidates[i].first, **compiled, occupancy);
    if (!own) {
      result.notes.push_back(llvm::toString(own.takeError()));
      continue;
    }
    running.push_back(i);
    texts.push_back(*compiled);
    request.candidates.push_back(std::move(*own));
  }
  if (running.empty())
    return result;
  request.fewestRounds = 6; // fewer have no 95 % interval
  request.leastRounds = 21;
  request.mostRounds = 101;
  request.precision = 0.005;
  request.seconds = 3;
  auto evaluated = impl->pool.evaluate(request, 3 * impl->allowedSeconds() * double(running.size()));
  if (!evaluated || evaluated->reply.candidates.size() != running.size() || !evaluated->reply.why.empty()) {
    result.notes.push_back("the final race failed: " +
                           (evaluated ? evaluated->reply.why : llvm::toString(evaluated.takeError())));
    return result;
  }
  for (size_t i = 0; i < running.size(); ++i) {
    const CandidateReply &reply = evaluated->reply.candidates[i];
    if (reply.verdict != verdictName(Verdict::Correct)) {
      result.notes.push_back("in the final race: " + reply.why);
      continue;
    }
    Measurement m = candidates[running[i]].second;
    m.time = {};
    if (!impl->addTimes(reply, m)) {
      result.notes.push_back("in the final race: " + m.why);
      continue;
    }
    if (!m.counters.count("predicted_seconds"))
      impl->addPrediction(*candidates[running[i]].first, *texts[i], m);
    score(m, impl->baselineMeasurement, impl->weights);
    result.runners.push_back(
        {running[i], m, m.time.baseline / m.time.seconds, m.counters["speedup.low"], m.counters["speedup.high"]});
  }
  return result;
}

SanitizerReport GpuEvaluator::sanitize(const Variant &variant) {
  const CpuEvaluatorOptions &o = impl->options.common;
  Verdict verdict;
  auto compiled = impl->compiler->compile(variant.text, verdict);
  if (!compiled)
    return {false, {llvm::toString(compiled.takeError())}};
  std::vector<SanitizerJob> jobs, originals;
  for (const KernelRewrite &rewrite : variant.rewrites) {
    // One launch of each kernel, the smallest for which the rewrite's conditions hold.
    const Workload *chosen = nullptr;
    unsigned index = 0;
    uint64_t least = UINT64_MAX;
    std::vector<const Workload *> workloads = {&o.performance};
    for (const Workload &w : o.verification)
      workloads.push_back(&w);
    for (const Workload *w : workloads)
      for (unsigned i = 0; i < w->launches.size(); ++i) {
        const LaunchImage &launch = w->launches[i];
        uint64_t threads = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2] * launch.block[0] *
                           launch.block[1] * launch.block[2];
        if (launch.kernel != rewrite.originalSymbol || threads >= least)
          continue;
        auto plan = concretePlan(rewrite, launch);
        if (!plan) {
          llvm::consumeError(plan.takeError());
          continue;
        }
        chosen = w;
        index = i;
        least = threads;
      }
    if (!chosen)
      continue;
    const LaunchImage &launch = chosen->launches[index];
    ConcretePlan plan = llvm::cantFail(concretePlan(rewrite, launch)), identity = identityPlan(launch, launch.kernel);
    for (emu::ReplayStep &step : plan.steps)
      step.kernel = (*compiled)->symbolOf(step.kernel);
    jobs.push_back({chosen->directory, (*compiled)->cubin, {index, plan.scratch, plan.steps}});
    originals.push_back({chosen->directory, (*compiled)->cubin, {index, {}, identity.steps}}); // the text holds both
  }
  std::string program = o.toolchain.cudaPath + "/bin/compute-sanitizer";
  Sanitizer sanitizer(program, WorkerPool::workerCommand(o.toolchain.libDir + "/../bin"), impl->dir.path(),
                      o.verify.cancel);
  return sanitizer.check(jobs, originals);
}
