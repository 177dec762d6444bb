//===- CpuEvaluator.cpp - evaluating variants without a GPU ---------------===//
#include "optiml/Evaluate/Predict/CpuEvaluator.h"
#include "Verify/BlockSample.h"
#include "Verify/ConcretePlan.h"
#include "Verify/ReplayProcess.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/Predict/PerformanceModel.h"
#include "optiml/Evaluate/Reward.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ThreadPool.h"
#include <chrono>
#include <mutex>
#include <set>

using namespace optiml;

namespace {

struct LaunchPrediction {
  std::vector<Prediction> steps;
  std::vector<Resources> resources;
};

} // namespace

struct CpuEvaluator::Impl {
  CpuEvaluatorOptions options;
  const GpuSpec *gpu = nullptr;
  TempDir dir;
  std::unique_ptr<TextCompiler> compiler;
  std::unique_ptr<Verifier> verifier;
  Measurement baselineMeasurement;
  std::vector<double> launchWeights;
  std::vector<LaunchPrediction> originalPredictions; ///< by launch of the performance workload
  std::map<std::string, Measurement> models;         ///< by variant key
  std::set<std::string> notes, originalFaults;
  unsigned counter = 0;
  std::mutex mutex;

  explicit Impl(TempDir dir) : dir(std::move(dir)) {}

  std::string scratch() {
    std::lock_guard lock(mutex);
    std::string path = dir.file("e" + std::to_string(counter++));
    llvm::sys::fs::create_directory(path);
    return path;
  }
  llvm::Expected<std::vector<emu::LaunchTrace>> trace(const std::string &module, unsigned launch,
                                                      const ConcretePlan &plan, const TracePlan &traced);
  llvm::Expected<LaunchPrediction> predict(const CompiledText &c, const std::string &module, unsigned launch,
                                           const ConcretePlan &plan);
  /// A module of the text, for tracing, beside the compiled text.
  llvm::Expected<std::string> traceModule(const std::string &text, const CompiledText &c);
  Measurement predictVariant(const Variant &variant, const CompiledText &c);
  Measurement model(const Variant &variant);
};

llvm::Expected<std::string> CpuEvaluator::Impl::traceModule(const std::string &text, const CompiledText &c) {
  std::string module = c.directory + "/trace.so";
  if (llvm::Error e =
          emu::buildReplayModule(options.path, text, options.compile, options.toolchain, emu::ModeTrace, module))
    return std::move(e);
  return module;
}

llvm::Expected<std::vector<emu::LaunchTrace>> CpuEvaluator::Impl::trace(const std::string &module, unsigned launch,
                                                                        const ConcretePlan &plan,
                                                                        const TracePlan &traced) {
  std::string work = scratch(), error;
  emu::ReplayJob job = replayJob(module, options.performance.directory, launch, plan);
  job.seconds = options.traceSeconds;
  job.onlyBlocks = traced.blocks;
  job.l1Bytes = traced.l1Bytes;
  auto child = runReplay(options.verify, job, work, options.traceSeconds + 5);
  if (!child)
    return child.takeError();
  emu::ReplayResult result;
  bool read = emu::readResult(work + "/result.json", result, error);
  llvm::sys::fs::remove_directories(work);
  if (!child->ok() || !read)
    return makeError("tracing failed: {0}{1}", child->describe(), child->err.empty() ? "" : ": " + child->err);
  if (!result.ok || result.traces.size() != plan.steps.size())
    return makeError("tracing failed: {0}", result.faults.empty() ? "no trace" : result.faults.front().message);
  return std::move(result.traces);
}

static bool hasGlobalAtomics(const emu::LaunchTrace &trace) {
  return llvm::any_of(trace.sites, [](const emu::SiteTrace &site) { return site.atomicBlocks > 0; });
}

// Blocks that do less than this share of the first one's work are not like it.
static constexpr double idleShare = 0.5;

llvm::Expected<LaunchPrediction> CpuEvaluator::Impl::predict(const CompiledText &c, const std::string &module,
                                                             unsigned launch, const ConcretePlan &plan) {
  const double bufferBytes = double(bytesOf(options.performance.launches[launch]));
  auto shapeOf = [&](const emu::ReplayStep &step) {
    return LaunchShape{step.grid, step.block, step.sharedBytes, bufferBytes, options.warmL2};
  };
  std::vector<Resources> resources;
  for (const emu::ReplayStep &step : plan.steps) {
    const Resources *own = c.resourcesOf(step.kernel);
    if (!own)
      return makeError("ptxas reports nothing for kernel '{0}'", step.kernel);
    resources.push_back(*own);
  }
  TracePlan traced = planTrace(*gpu, resources.front(), shapeOf(plan.steps.front()), options.tracedBlocks);
  auto traces = trace(module, launch, plan, traced);
  uint64_t blocks = blocksOf(plan.steps.front().grid);
  if (traces && traced.blocks.size() == 1 && blocks > 1 && llvm::any_of(*traces, hasGlobalAtomics)) {
    // Whether blocks meet on the same lines is seen of two.
    traced.blocks.push_back(uint32_t((traced.blocks.front() + blocks / 2) % blocks));
    traced.l1Bytes *= 2;
    traces = trace(module, launch, plan, traced);
  }
  if (!traces)
    return traces.takeError();
  LaunchPrediction prediction;
  for (size_t i = 0; i < plan.steps.size(); ++i)
    prediction.steps.push_back(predictLaunch((*traces)[i], resources[i], shapeOf(plan.steps[i]), *gpu));
  auto boundBy = [&](const std::vector<emu::LaunchTrace> &part, uint64_t most) {
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      LaunchShape shape = shapeOf(plan.steps[i]);
      shape.grid = {uint32_t(std::min(most, blocksOf(plan.steps[i].grid))), 1, 1};
      Prediction bound = predictLaunch(part[i], resources[i], shape, *gpu);
      if (bound.seconds > prediction.steps[i].seconds) {
        prediction.steps[i].seconds = bound.seconds;
        prediction.steps[i].bottleneck = bound.bottleneck;
      }
    }
  };
  // Work is not always spread evenly: threads without a share of their own stand in the last blocks. The first block
  // alone is a lower bound; where it does far more than those in the middle, the blocks that begin with it are another.
  if (!traced.blocks.empty() && traced.blocks.front() != 0) {
    auto first = trace(module, launch, plan, {{0}, gpu->l1Bytes});
    if (!first)
      return first.takeError();
    boundBy(*first, 1);
    double there = 0, here = 0;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      there += (*first)[i].instructions();
      here += (*traces)[i].instructions() / std::max<double>(1, double((*traces)[i].tracedBlocks));
    }
    TracePlan round{{}, traced.l1Bytes, traced.round};
    for (uint64_t i = 1; here < idleShare * there && i <= options.tracedBlocks && i * gpu->sms < traced.round; ++i)
      round.blocks.push_back(uint32_t(i * gpu->sms));
    if (!round.blocks.empty()) {
      auto beginning = trace(module, launch, plan, round);
      if (!beginning)
        return beginning.takeError();
      boundBy(*beginning, traced.round);
    }
  }
  prediction.resources = std::move(resources);
  return prediction;
}

static Measurement failedMeasurement(Verdict verdict, llvm::Error error) {
  Measurement m;
  m.verdict = verdict;
  m.why = llvm::toString(std::move(error));
  return m;
}

Measurement CpuEvaluator::Impl::predictVariant(const Variant &variant, const CompiledText &compiled) {
  auto module = traceModule(variant.text, compiled);
  if (!module)
    return failedMeasurement(Verdict::CompileError, module.takeError());
  WorkloadPrediction sum;
  for (unsigned i = 0; i < options.performance.launches.size(); ++i) {
    const LaunchImage &launch = options.performance.launches[i];
    LaunchPrediction prediction = originalPredictions[i];
    for (const KernelRewrite &rewrite : variant.rewrites) {
      if (rewrite.originalSymbol != launch.kernel)
        continue;
      auto plan = concretePlan(rewrite, launch);
      if (!plan) { // the original runs there
        llvm::Error rest = llvm::handleErrors(plan.takeError(), [](const NotApplicable &) {});
        if (rest)
          return failedMeasurement(Verdict::RuntimeError, std::move(rest));
        continue;
      }
      auto own = predict(compiled, *module, i, *plan);
      if (!own)
        return failedMeasurement(Verdict::RuntimeError, own.takeError());
      prediction = *own;
    }
    sum.beginLaunch(launch.weight);
    for (size_t s = 0; s < prediction.steps.size(); ++s)
      sum.addStep(prediction.steps[s], prediction.resources[s]);
  }
  Measurement m;
  m.time.predicted = true;
  sum.fill(m);
  if (m.verdict == Verdict::Predicted)
    score(m, baselineMeasurement, launchWeights);
  return m;
}

/// Compile and predict; the verdict is Predicted unless something is wrong.
Measurement CpuEvaluator::Impl::model(const Variant &variant) {
  std::string key = variant.key();
  {
    std::lock_guard lock(mutex);
    if (auto it = models.find(key); it != models.end())
      return it->second;
  }
  Verdict verdict;
  auto compiled = compiler->compile(variant.text, verdict);
  if (!compiled)
    return failedMeasurement(verdict, compiled.takeError());
  Measurement m = predictVariant(variant, **compiled);
  std::lock_guard lock(mutex);
  models[key] = m;
  return m;
}

CpuEvaluator::CpuEvaluator() = default;
CpuEvaluator::~CpuEvaluator() = default;
const Measurement &CpuEvaluator::baseline() const { return impl->baselineMeasurement; }
const std::vector<double> &CpuEvaluator::weights() const { return impl->launchWeights; }

std::vector<std::string> CpuEvaluator::originalFaults() const {
  std::lock_guard lock(impl->mutex);
  return {impl->originalFaults.begin(), impl->originalFaults.end()};
}

std::vector<std::string> CpuEvaluator::notes() const {
  std::lock_guard lock(impl->mutex);
  return {impl->notes.begin(), impl->notes.end()};
}

llvm::Expected<std::unique_ptr<CpuEvaluator>> CpuEvaluator::create(CpuEvaluatorOptions options) {
  auto dir = TempDir::create("optiml-evaluate");
  if (!dir)
    return dir.takeError();
  std::unique_ptr<CpuEvaluator> evaluator(new CpuEvaluator);
  evaluator->impl = std::make_unique<Impl>(std::move(*dir));
  Impl &impl = *evaluator->impl;
  impl.options = std::move(options);
  CpuEvaluatorOptions &o = impl.options;
  impl.gpu = o.gpu ? o.gpu : &GpuSpec::forArch(o.compile.arch);
  o.verify.replayProgram = replayProgramOf(o.toolchain);

  auto compiler = TextCompiler::create(o.toolchain, o.path, o.compile, o.verify.cancel);
  if (!compiler)
    return compiler.takeError();
  impl.compiler = std::move(*compiler);
  Verdict verdict;
  auto original = impl.compiler->compile(o.text, verdict);
  if (!original)
    return original.takeError();
  auto verifier = Verifier::create(o.toolchain, o.path, o.text, o.compile, o.verification, o.verify);
  if (!verifier)
    return verifier.takeError();
  impl.verifier = std::move(*verifier);
  impl.verifier->addLarge(o.performance);

  auto module = impl.traceModule(o.text, **original);
  if (!module)
    return module.takeError();
  const std::vector<LaunchImage> &launches = o.performance.launches;
  impl.originalPredictions.resize(launches.size());
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency());
  llvm::Error failures = llvm::Error::success();
  for (unsigned i = 0; i < launches.size(); ++i)
    threads.async([&, i] {
      auto prediction = impl.predict(**original, *module, i, identityPlan(launches[i], launches[i].kernel));
      if (prediction) {
        impl.originalPredictions[i] = std::move(*prediction);
        return;
      }
      std::lock_guard lock(impl.mutex);
      failures = llvm::joinErrors(std::move(failures), prediction.takeError());
    });
  threads.wait();
  if (failures)
    return std::move(failures);
  WorkloadPrediction sum;
  for (unsigned i = 0; i < launches.size(); ++i) {
    impl.launchWeights.push_back(launches[i].weight);
    sum.beginLaunch(launches[i].weight);
    const LaunchPrediction &prediction = impl.originalPredictions[i];
    for (size_t s = 0; s < prediction.steps.size(); ++s)
      sum.addStep(prediction.steps[s], prediction.resources[s]);
  }
  Measurement &base = impl.baselineMeasurement;
  sum.fill(base);
  if (base.verdict != Verdict::Predicted)
    return makeError("the original cannot be predicted: {0}", base.why);
  base.verdict = Verdict::Correct;
  score(base, base, impl.launchWeights);
  return evaluator;
}

Measurement CpuEvaluator::predict(const Variant &variant, const CompiledText &compiled) {
  return variant.rewrites.empty() ? impl->baselineMeasurement : impl->predictVariant(variant, compiled);
}

void CpuEvaluator::verify(const Variant &variant, Measurement &m) {
  auto report = impl->verifier->verify(variant);
  if (!report) {
    m.verdict = Verdict::RuntimeError;
    m.why = "verification could not run: " + llvm::toString(report.takeError());
    return;
  }
  m.verdict = report->verdict;
  m.why = report->why;
  m.counters["verify.launches"] += report->launches;
  m.counters["verify.runs"] += report->runs;
  m.counters["verify.error"] = std::max(m.counters["verify.error"], report->error);
  if (report->longLaunches)
    m.counters["verify.long"] += report->longLaunches;
  std::lock_guard lock(impl->mutex);
  impl->notes.insert(report->notes.begin(), report->notes.end());
  for (const emu::ReplayFault &fault : report->originalFaults)
    if (fault.kind != "benign-race")
      impl->originalFaults.insert(fault.message);
}

Measurement CpuEvaluator::evaluate(const Variant &variant, Fidelity fidelity) {
  auto start = std::chrono::steady_clock::now();
  if (variant.rewrites.empty())
    return impl->baselineMeasurement;
  Measurement m = impl->model(variant);
  if (fidelity == Fidelity::Verified && m.verdict == Verdict::Predicted)
    verify(variant, m);
  m.cost = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return m;
}
