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

// A ratio may be so much larger than that of the original's time alone and the variant's: clocks vary.
static constexpr double mostFlattered = 1.1;
// What is refused before the results in double precision are there is not looked at again, and sums of very many terms
// may differ by so much.
static constexpr double provisionalFloat = 0x1p-10, provisionalDouble = 0x1p-28;
// Launches that take little of the time are timed so roughly at most.
static constexpr double roughest = 0.1;
// Launches that take so long are timed a few times only.
static constexpr double slowSeconds = 5e-3, slowRaceSeconds = 0.06;
// A new best variant is profiled when it takes this part of the time of the last one that was.
static constexpr double worthProfiling = 0.9;
// The others wait meanwhile: of the time since the original was measured, reading counters takes no larger part.
static constexpr double profilingShare = 0.1;

GpuEvaluator::GpuEvaluator() = default;
GpuEvaluator::~GpuEvaluator() = default;
const Measurement &GpuEvaluator::baseline() const { return impl->baselineMeasurement; }

std::vector<std::string> GpuEvaluator::originalFaults() const {
  return impl->isThorough && impl->verifier ? impl->verifier->originalFaults() : std::vector<std::string>();
}

std::vector<std::string> GpuEvaluator::notes() const {
  std::lock_guard lock(impl->mutex);
  std::vector<std::string> all(impl->remarks.begin(), impl->remarks.end());
  if (impl->isThorough && impl->verifier)
    llvm::append_range(all, impl->verifier->notes());
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
  evaluator->impl = std::make_unique<Impl>(std::move(*dir), pool, std::move(options));
  if (llvm::Error e = evaluator->impl->start())
    return std::move(e);
  return evaluator;
}

llvm::Expected<PrepareRequest> GpuEvaluator::Impl::requestOf(GpuCases &cases, bool careful, FreshIntegers integers) {
  auto made = cases.ofAllLaunches(integers);
  if (!made)
    return made.takeError();
  PrepareRequest request;
  request.cubin = originalText->cubin;
  request.careful = careful;
  request.cold = options.cold;
  request.cases = std::move(*made);
  return request;
}

llvm::Expected<PrepareRequest> GpuEvaluator::Impl::firstRequest(bool careful) {
  VerifyOptions verify = options.common.verify;
  verify.freshInputs = 0;
  GpuCases cases(options.common.performance, verify, /*shadowModule=*/"", dir.path(), 0);
  auto request = requestOf(cases, careful, FreshIntegers::Keep);
  if (request)
    for (CaseRequest &c : request->cases)
      for (BufferBound &bound : c.bounds)
        bound.relative = std::max(bound.relative, bound.compare == Compare::Float    ? provisionalFloat
                                                  : bound.compare == Compare::Double ? provisionalDouble
                                                                                     : 0);
  return request;
}

llvm::Expected<PrepareReply> GpuEvaluator::Impl::setUp(const std::vector<WorkerPool::MakeRequest> &alternatives) {
  std::vector<std::string> notes;
  auto prepared = pool.setUp({options.common.performance.directory, options.common.verify.seed}, alternatives, notes,
                             options.setUpSeconds);
  if (prepared)
    for (const auto *list : {&notes, &prepared->notes})
      for (const std::string &text : *list)
        note(text);
  return prepared;
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
  CpuEvaluatorOptions &o = options.common;
  spec = o.gpu ? o.gpu : &GpuSpec::forArch(o.compile.arch);
  o.warmL2 = !options.cold;
  compiler = std::move(options.compiler);
  originalText = std::move(options.original);
  if (!originalText) {
    auto made = TextCompiler::create(o.toolchain, o.path, o.compile, o.verify.cancel);
    if (!made)
      return made.takeError();
    compiler = std::move(*made);
    Verdict verdict;
    auto original = compiler->compile(o.text, verdict);
    if (!original)
      return original.takeError();
    originalText = std::move(*original);
  }
  compiler->useDeviceText(std::move(o.device), originalText);
  // Most of what verifying needs takes no GPU.
  preparing = std::thread([this, isMeasured = started.get_future()]() mutable {
    prepareThoroughly(std::move(isMeasured));
    std::lock_guard lock(mutex);
    hasEnded = true;
    ended.notify_all();
  });
  llvm::Error failure = measureOriginal();
  started.set_value(!failure);
  return failure;
}

llvm::Error GpuEvaluator::Impl::measureOriginal() {
  StopWatch watch;
  auto prepared = setUp({[&] { return firstRequest(/*careful=*/false); }, [&] { return firstRequest(true); }});
  if (!prepared)
    return prepared.takeError();
  watch.lap("cost.setup");
  CandidateRequest identity = addOriginal(*prepared, *originalText);
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
  addProfile(identity, base);
  watch.lap("cost.profile");
  for (const auto &[step, seconds] : watch.steps)
    base.counters[step] = seconds;
  score(base, base, weights);
  best = base.time.seconds;
  bestSeconds = leastSeconds = launchSeconds;
  measuredOriginal = std::chrono::steady_clock::now();
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

std::vector<LaunchAim> GpuEvaluator::Impl::aimsOf(const CandidateRequest &candidate) const {
  const Workload &workload = options.common.performance;
  double total = 0;
  for (unsigned i = 0; i < bestSeconds.size(); ++i)
    total += workload.launches[i].weight * bestSeconds[i];
  std::vector<LaunchAim> aims;
  for (const PlannedLaunch &planned : candidate.launches) {
    const unsigned i = planned.launch;
    if (i >= bestSeconds.size() || !(bestSeconds[i] > 0) || !(total > 0))
      continue;
    // Errors e of launches with shares s of the time add up to sqrt(sum (s e)^2): with e = p / sqrt(s) that is p.
    const double share = workload.launches[i].weight * bestSeconds[i] / total;
    aims.push_back(
        {i, std::min(roughest, LaunchAim().precision / std::sqrt(share)), launchSeconds[i] / leastSeconds[i]});
  }
  return aims;
}

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
    // The ratio is of runs side by side; the original's own time is the same for all variants. Where something else
    // uses the GPU, long runs are interrupted and short ones are not: then the ratio flatters the variant.
    const double alone = t.seconds > 0 ? launchSeconds[t.launch] / t.seconds : t.ratio,
                 calm = t.ratio > mostFlattered * alone ? alone / t.ratio : 1;
    m.time.perLaunch[t.launch] = launchSeconds[t.launch] / (calm * t.ratio);
    slowest[t.launch] = launchSeconds[t.launch] / (calm * t.low);
    fastest[t.launch] = launchSeconds[t.launch] / (calm * t.high);
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
  if (!canPredict)
    return;
  Measurement predicted = predictor->predict(variant, compiled);
  if (predicted.verdict != Verdict::Predicted)
    return;
  for (const auto &[name, value] : predicted.counters)
    m.counters.emplace(name, value);
  m.counters["predicted_seconds"] = predicted.time.seconds;
  if (predicted.counters.count("roofline"))
    m.counters["roofline"] = predicted.counters["roofline"] * predicted.time.seconds / m.time.seconds;
  m.bottleneck = predicted.bottleneck;
}

void GpuEvaluator::Impl::describe(const Variant &variant) {
  Measurement m;
  {
    std::lock_guard lock(mutex);
    auto known = settled.find(variant.key());
    if (known == settled.end() || !known->second.correct() || known->second.counters.count("profile_seconds"))
      return;
    m = known->second;
  }
  Verdict verdict;
  auto compiled = compiler->compile(variant, verdict);
  if (!compiled)
    return llvm::consumeError(compiled.takeError());
  double occupancy;
  auto candidate = candidateOf(variant, **compiled, occupancy);
  if (!candidate)
    return llvm::consumeError(candidate.takeError());
  addPrediction(variant, **compiled, m);
  addProfile(*candidate, m);
  std::lock_guard lock(mutex);
  settled[variant.key()] = m;
}

/// Whether there is time to read counters once more, which counts from then on.
bool GpuEvaluator::Impl::mayProfile() {
  double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - measuredOriginal).count();
  auto last = baselineMeasurement.counters.find("cost.profile");
  double expected = last == baselineMeasurement.counters.end() ? 0 : last->second;
  if (profilingSeconds + expected > profilingShare * elapsed)
    return false;
  profilingSeconds += expected;
  return true;
}

Measurement GpuEvaluator::Impl::measure(const Variant &variant, StopWatch &watch, WorkerPool::Clock::time_point beginBy,
                                        bool closely) {
  Verdict verdict;
  auto compiled = compiler->compile(variant, verdict);
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
  EvaluateRequest request;
  request.candidates = {*candidate};
  if (*llvm::max_element(launchSeconds) > slowSeconds) // the final race looks closer
    request.seconds = slowRaceSeconds;
  request.hopeless = 1; // of what is known when its turn comes
  auto evaluated = evaluate(request, allowedSeconds(), beginBy, /*ahead=*/!closely);
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
  m.provisional = true;
  bool leads;
  {
    std::lock_guard lock(mutex);
    // Worth a closer look, for which the others wait: not before there is any gain, nor for a small step.
    leads =
        closely && isThorough && m.time.seconds < best && m.time.seconds < worthProfiling * profiled && mayProfile();
    if (m.time.seconds < best)
      bestSeconds = m.time.perLaunch;
    for (size_t i = 0; i < leastSeconds.size(); ++i)
      leastSeconds[i] = std::min(leastSeconds[i], m.time.perLaunch[i]);
    best = std::min(best, m.time.seconds);
    if (leads)
      profiled = m.time.seconds;
  }
  if (leads) {
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
  // What the baseline has no figure for must not count.
  std::map<std::string, double>::node_type roofline;
  if (!baselineMeasurement.counters.count("roofline"))
    roofline = m.counters.extract("roofline");
  score(m, baselineMeasurement, weights);
  if (roofline)
    m.counters.insert(std::move(roofline));
  return m;
}

Measurement GpuEvaluator::evaluate(const Variant &variant, Fidelity) {
  if (variant.rewrites.empty())
    return impl->baselineMeasurement;
  auto start = std::chrono::steady_clock::now();
  StopWatch watch;
  Measurement m = impl->measure(variant, watch, impl->beginBy, /*closely=*/true);
  if (m.correct())
    impl->addUnsettled(variant, m);
  for (const auto &[step, seconds] : watch.steps)
    m.counters[step] = seconds;
  m.cost = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return m;
}

void GpuEvaluator::beginNothingAfter(std::chrono::steady_clock::time_point time) { impl->beginBy = time; }
