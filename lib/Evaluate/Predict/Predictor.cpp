//===- Predictor.cpp - how long a launch takes on a GPU --------------------===//
#include "optiml/Evaluate/Predict/Predictor.h"
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
#include <mutex>

using namespace optiml;

namespace {

struct LaunchPrediction {
  std::vector<Prediction> steps;
  std::vector<Resources> resources;
};

} // namespace

struct Predictor::Impl {
  PredictorOptions options;
  const GpuSpec *gpu = nullptr;
  TempDir dir;
  Measurement baselineMeasurement;
  std::vector<double> launchWeights;
  std::vector<LaunchPrediction> originalPredictions; ///< by launch of the performance workload
  std::atomic<unsigned> counter{0};

  explicit Impl(TempDir dir) : dir(std::move(dir)) {}

  std::string scratch() {
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
  llvm::Error predictOriginal(const CompiledText &original);
};

llvm::Expected<std::string> Predictor::Impl::traceModule(const std::string &text, const CompiledText &c) {
  std::string module = c.directory + "/trace.so";
  if (llvm::Error e =
          emu::buildReplayModule(options.path, text, options.compile, options.toolchain, emu::ModeTrace, module))
    return std::move(e);
  return module;
}

llvm::Expected<std::vector<emu::LaunchTrace>>
Predictor::Impl::trace(const std::string &module, unsigned launch, const ConcretePlan &plan, const TracePlan &traced) {
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

llvm::Expected<LaunchPrediction> Predictor::Impl::predict(const CompiledText &c, const std::string &module,
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

Measurement Predictor::predict(const Variant &variant, const CompiledText &compiled) {
  if (variant.rewrites.empty())
    return impl->baselineMeasurement;
  const PredictorOptions &options = impl->options;
  auto module = impl->traceModule(variant.text, compiled);
  if (!module)
    return failedMeasurement(Verdict::CompileError, module.takeError());
  WorkloadPrediction sum;
  for (unsigned i = 0; i < options.performance.launches.size(); ++i) {
    const LaunchImage &launch = options.performance.launches[i];
    LaunchPrediction prediction = impl->originalPredictions[i];
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
      auto own = impl->predict(compiled, *module, i, *plan);
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
    score(m, impl->baselineMeasurement, impl->launchWeights);
  return m;
}

llvm::Error Predictor::Impl::predictOriginal(const CompiledText &original) {
  auto module = traceModule(options.text, original);
  if (!module)
    return module.takeError();
  const std::vector<LaunchImage> &launches = options.performance.launches;
  originalPredictions.resize(launches.size());
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency());
  llvm::Error failures = llvm::Error::success();
  std::mutex failing;
  for (unsigned i = 0; i < launches.size(); ++i)
    threads.async([&, i] {
      auto prediction = predict(original, *module, i, identityPlan(launches[i], launches[i].kernel));
      if (prediction) {
        originalPredictions[i] = std::move(*prediction);
        return;
      }
      std::lock_guard lock(failing);
      failures = llvm::joinErrors(std::move(failures), prediction.takeError());
    });
  threads.wait();
  if (failures)
    return failures;
  WorkloadPrediction sum;
  for (unsigned i = 0; i < launches.size(); ++i) {
    launchWeights.push_back(launches[i].weight);
    sum.beginLaunch(launches[i].weight);
    const LaunchPrediction &prediction = originalPredictions[i];
    for (size_t s = 0; s < prediction.steps.size(); ++s)
      sum.addStep(prediction.steps[s], prediction.resources[s]);
  }
  Measurement &base = baselineMeasurement;
  sum.fill(base);
  if (base.verdict != Verdict::Predicted)
    return makeError("the original cannot be predicted: {0}", base.why);
  base.verdict = Verdict::Correct;
  score(base, base, launchWeights);
  return llvm::Error::success();
}

Predictor::Predictor() = default;
Predictor::~Predictor() = default;
const Measurement &Predictor::baseline() const { return impl->baselineMeasurement; }
const std::vector<double> &Predictor::weights() const { return impl->launchWeights; }

llvm::Expected<std::unique_ptr<Predictor>> Predictor::create(PredictorOptions options, const CompiledText &original) {
  auto dir = TempDir::create("optiml-predict");
  if (!dir)
    return dir.takeError();
  std::unique_ptr<Predictor> predictor(new Predictor);
  predictor->impl = std::make_unique<Impl>(std::move(*dir));
  Impl &impl = *predictor->impl;
  impl.options = std::move(options);
  impl.gpu = impl.options.gpu ? impl.options.gpu : &GpuSpec::forArch(impl.options.compile.arch);
  impl.options.verify.replayProgram = replayProgramOf(impl.options.toolchain);
  if (llvm::Error e = impl.predictOriginal(original))
    return std::move(e);
  return predictor;
}

llvm::Expected<double> optiml::predictOriginal(PredictorOptions options) {
  auto compiler = TextCompiler::create(options.toolchain, options.path, options.compile, options.verify.cancel);
  if (!compiler)
    return compiler.takeError();
  Verdict verdict;
  auto original = (*compiler)->compile(options.text, verdict);
  if (!original)
    return original.takeError();
  auto predictor = Predictor::create(std::move(options), **original);
  if (!predictor)
    return predictor.takeError();
  return (*predictor)->baseline().time.seconds;
}
