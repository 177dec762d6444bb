//===- GpuEvaluator.cpp - evaluating variants on a GPU --------------------===//
#include "GpuEvaluatorImpl.h"
#include "Verify/ConcretePlan.h"
#include "Verify/GpuCases.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/Predict/PerformanceModel.h"
#include "optiml/Evaluate/Reward.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <future>

using namespace optiml;
using namespace optiml::gpu;

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
    llvm::append_range(all, impl->cpu->notes());
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

CandidateRequest GpuEvaluator::Impl::addOriginal(const PrepareReply &prepared, const CompiledText &original) {
  const std::vector<LaunchImage> &launches = options.common.performance.launches;
  launchSeconds.assign(launches.size(), 0);
  writtenBytes.assign(launches.size(), 0);
  for (const PreparedLaunch &launch : prepared.launches) {
    launchSeconds[launch.launch] = launch.seconds;
    writtenBytes[launch.launch] = launch.writtenBytes;
  }
  Measurement &base = baselineMeasurement;
  CandidateRequest identity;
  identity.cubin = original.cubin;
  double heaviest = 0;
  for (unsigned i = 0; i < launches.size(); ++i) {
    const LaunchImage &launch = launches[i];
    double seconds = launch.weight * launchSeconds[i];
    weights.push_back(launch.weight);
    base.time.perLaunch.push_back(launchSeconds[i]);
    base.time.seconds += seconds;
    if (launchSeconds[i] == 0)
      continue;
    ConcretePlan plan = identityPlan(launch, launch.kernel);
    identity.launches.push_back({i, plan.scratch, plan.steps});
    const Resources *resources = original.resourcesOf(launch.kernel);
    if (resources && seconds > heaviest) {
      heaviest = seconds;
      base.resources = *resources;
      base.resources.occupancy =
          computeOccupancy(*spec, *resources, launch.block[0] * launch.block[1] * launch.block[2], launch.sharedBytes)
              .share;
    }
  }
  return identity;
}

llvm::Error GpuEvaluator::Impl::start() {
  StopWatch watch;
  CpuEvaluatorOptions &o = options.common;
  spec = o.gpu ? o.gpu : &GpuSpec::forArch(o.compile.arch);
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
  CandidateRequest identity = addOriginal(*prepared, **original);
  Measurement &base = baselineMeasurement;
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
            computeOccupancy(*spec, resources, step.block[0] * step.block[1] * step.block[2], step.sharedBytes);
        occupancy = std::min(occupancy, o.share);
        step.kernel = symbol;
      }
      request.launches.push_back({i, plan->scratch, plan->steps});
    }
  return request;
}

/// Everything one candidate may need: restoring, runs, checks and rounds, on a GPU that may be slow at first.
double GpuEvaluator::Impl::allowedSeconds() const { return 60 + 400 * llvm::sum_of(launchSeconds); }

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
    double floor = double(writtenBytes[t.launch]) / std::max(spec->l2BytesPerSecond, spec->dramBytesPerSecond);
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
            (*compiled)->resourcesOf(rewrite.plan.steps.empty() ? rewrite.twin : rewrite.plan.steps[0].kernel))
      m.resources.add(*resources);
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
