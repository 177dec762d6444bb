//===- CpuEvaluator.cpp - evaluating variants without a GPU ---------------===//
#include "optiml/Evaluate/CpuEvaluator.h"
#include "VerifyPlan.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/PerformanceModel.h"
#include "optiml/Evaluate/Ptxas.h"
#include "optiml/Evaluate/Reward.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <mutex>
#include <set>

using namespace optiml;

namespace {

/// What one text compiles to. Made once; the mutex is held while it is made.
struct Compiled {
  std::mutex mutex;
  bool modulesBuilt = false, cubinBuilt = false;
  std::string modulesError, cubinError; ///< why it does not compile
  bool cubinTimedOut = false;
  std::string directory;
  PtxasReport ptxas;
};

std::string moduleFile(const std::string &directory, uint32_t mode) {
  return directory + "/m" + std::to_string(mode) + ".so";
}

struct LaunchPrediction {
  std::vector<Prediction> steps;
  std::vector<Resources> resources;
};

} // namespace

struct CpuEvaluator::Impl {
  CpuEvaluatorOptions options;
  const GpuSpec *gpu = nullptr;
  TempDir dir;
  std::unique_ptr<Verifier> verifier;
  Measurement baselineMeasurement;
  std::vector<double> launchWeights;
  std::vector<LaunchPrediction> originalPredictions; ///< by launch of the performance workload
  std::map<std::string, std::shared_ptr<Compiled>> compiled; ///< by text
  std::map<std::string, Measurement> models;                 ///< by variant key
  std::set<std::string> notes;
  std::string summary;
  std::string replayProgram;
  unsigned counter = 0;
  std::mutex mutex;

  explicit Impl(TempDir dir) : dir(std::move(dir)) {}

  std::string scratch() {
    std::lock_guard lock(mutex);
    std::string path = dir.file("e" + std::to_string(counter++));
    llvm::sys::fs::create_directory(path);
    return path;
  }
  std::shared_ptr<Compiled> entry(const std::string &text);
  void drop(const std::string &text);
  llvm::Error modules(Compiled &c, const std::string &text);
  llvm::Error cubin(Compiled &c, const std::string &text);
  llvm::Error buildModules(const std::string &text, const std::vector<std::pair<uint32_t, std::string>> &outputs);
  llvm::Expected<LaunchPrediction> predict(Compiled &c, unsigned launch, const ConcretePlan &plan);
  Measurement model(const Variant &variant);
  static const Resources *resourcesOf(const PtxasReport &report, const std::string &kernel);
};

std::shared_ptr<Compiled> CpuEvaluator::Impl::entry(const std::string &text) {
  std::lock_guard lock(mutex);
  std::shared_ptr<Compiled> &c = compiled[text];
  if (!c)
    c = std::make_shared<Compiled>();
  return c;
}

/// Frees the disk space of a variant that is done with.
void CpuEvaluator::Impl::drop(const std::string &text) {
  std::lock_guard lock(mutex);
  auto it = compiled.find(text);
  if (it == compiled.end())
    return;
  if (!it->second->directory.empty())
    llvm::sys::fs::remove_directories(it->second->directory);
  compiled.erase(it);
}

/// Bounds, verify and trace modules from one parse.
llvm::Error CpuEvaluator::Impl::modules(Compiled &c, const std::string &text) {
  std::lock_guard lock(c.mutex);
  if (!c.modulesBuilt) {
    c.modulesBuilt = true;
    if (c.directory.empty())
      c.directory = scratch();
    std::vector<std::pair<uint32_t, std::string>> outputs;
    for (uint32_t mode : {emu::ModeTrace, emu::ModeBounds, emu::ModeVerify})
      outputs.emplace_back(mode, moduleFile(c.directory, mode));
    if (llvm::Error e = emu::buildReplayModules(options.path, text, options.compile, options.toolchain, outputs))
      c.modulesError = llvm::toString(std::move(e));
  }
  return c.modulesError.empty() ? llvm::Error::success() : makeError(c.modulesError);
}

llvm::Error CpuEvaluator::Impl::cubin(Compiled &c, const std::string &text) {
  std::lock_guard lock(c.mutex);
  if (!c.cubinBuilt) {
    c.cubinBuilt = true;
    if (c.directory.empty())
      c.directory = scratch();
    CubinRequest request;
    request.nvcc = options.toolchain.nvcc;
    llvm::StringRef name = llvm::sys::path::filename(options.path);
    request.source = c.directory + "/" + name.str();
    request.cubin = c.directory + "/out.cubin";
    request.architecture = options.compile.archName;
    request.includeDirectory = llvm::sys::path::parent_path(options.path).str();
    request.flags = cubinFlags(options.compile.nvccArgs);
    request.limits.seconds = 60;
    request.limits.memoryBytes = uint64_t(4) << 30;
    request.cancel = options.verify.cancel;
    if (llvm::Error e = writeFileAtomically(request.source, text))
      return e;
    auto result = compileCubin(request);
    if (!result)
      return result.takeError();
    c.cubinTimedOut = result->timedOut;
    if (!result->ok)
      c.cubinError = result->timedOut ? "nvcc took longer than 60 s" : result->diagnostics;
    c.ptxas = result->report;
  }
  return c.cubinError.empty() ? llvm::Error::success() : makeError(c.cubinError);
}

/// For the Verifier: from the modules that were built together where it has them (shadow is built on its own).
llvm::Error CpuEvaluator::Impl::buildModules(const std::string &text,
                                             const std::vector<std::pair<uint32_t, std::string>> &outputs) {
  std::vector<std::pair<uint32_t, std::string>> others;
  for (const auto &[mode, out] : outputs) {
    if (mode != emu::ModeBounds && mode != emu::ModeVerify) {
      others.emplace_back(mode, out);
      continue;
    }
    std::shared_ptr<Compiled> c = entry(text);
    if (llvm::Error e = modules(*c, text))
      return e;
    if (std::error_code ec = llvm::sys::fs::copy_file(moduleFile(c->directory, mode), out))
      return makeError("cannot write '{0}': {1}", out, ec.message());
  }
  if (others.empty())
    return llvm::Error::success();
  return emu::buildReplayModules(options.path, text, options.compile, options.toolchain, others);
}

const Resources *CpuEvaluator::Impl::resourcesOf(const PtxasReport &report, const std::string &kernel) {
  if (auto it = report.find(kernel); it != report.end())
    return &it->second;
  // By plain name: the part of the demangled name before the parameters, without its scope.
  for (const auto &[symbol, resources] : report) {
    std::string name = llvm::demangle(symbol);
    name = name.substr(0, name.find('('));
    size_t scope = name.rfind("::");
    if ((scope == std::string::npos ? name : name.substr(scope + 2)) == kernel)
      return &resources;
  }
  return nullptr;
}

llvm::Expected<LaunchPrediction> CpuEvaluator::Impl::predict(Compiled &c, unsigned launch, const ConcretePlan &plan) {
  const LaunchImage &image = options.performance.launches[launch];
  std::string work = scratch(), error;
  emu::ReplayJob job;
  job.module = moduleFile(c.directory, emu::ModeTrace);
  job.workload = options.performance.directory;
  job.launch = launch;
  job.scratch = plan.scratch;
  job.steps = plan.steps;
  job.seconds = options.traceSeconds;
  double bufferBytes = 0;
  for (const BufferImage &buffer : image.buffers)
    bufferBytes += double(buffer.bytes);
  const emu::ReplayStep &first = plan.steps.front();
  const Resources *firstResources = resourcesOf(c.ptxas, first.kernel);
  if (!firstResources)
    return makeError("ptxas reports nothing for kernel '{0}'", first.kernel);
  TracePlan traced = planTrace(*gpu, *firstResources, {first.grid, first.block, first.sharedBytes, bufferBytes}, options.tracedBlocks);
  job.traceBlocks = traced.blocks;
  job.l1Bytes = traced.l1Bytes;
  if (!emu::writeJob(job, work + "/job.json", error))
    return makeError(error);
  ProcessOptions process;
  process.limits.seconds = options.traceSeconds + 5;
  process.limits.memoryBytes = options.verify.memoryBytes;
  process.limits.outputBytes = 1 << 16;
  process.cancel = options.verify.cancel;
  auto child = runProcess({replayProgram, work + "/job.json", work + "/result.json"}, process);
  if (!child)
    return child.takeError();
  emu::ReplayResult result;
  bool read = emu::readResult(work + "/result.json", result, error);
  llvm::sys::fs::remove_directories(work);
  if (!child->ok() || !read)
    return makeError("tracing failed: {0}{1}", child->describe(), child->err.empty() ? "" : ": " + child->err);
  if (!result.ok || result.traces.size() != plan.steps.size())
    return makeError("tracing failed: {0}", result.faults.empty() ? "no trace" : result.faults.front().message);
  LaunchPrediction prediction;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const emu::ReplayStep &step = plan.steps[i];
    const Resources *resources = resourcesOf(c.ptxas, step.kernel);
    if (!resources)
      return makeError("ptxas reports nothing for kernel '{0}'", step.kernel);
    LaunchShape shape{step.grid, step.block, step.sharedBytes, bufferBytes};
    prediction.steps.push_back(predictLaunch(result.traces[i], *resources, shape, *gpu));
    prediction.resources.push_back(*resources);
  }
  return prediction;
}

/// Compile and predict; the verdict is Predicted unless something is wrong.
Measurement CpuEvaluator::Impl::model(const Variant &variant) {
  std::string key = variant.key();
  {
    std::lock_guard lock(mutex);
    if (auto it = models.find(key); it != models.end())
      return it->second;
  }
  Measurement m;
  m.time.predicted = true;
  std::shared_ptr<Compiled> c = entry(variant.text);
  auto failed = [&](Verdict verdict, llvm::Error error) {
    m.verdict = verdict;
    m.why = llvm::toString(std::move(error));
    return m;
  };
  if (llvm::Error e = cubin(*c, variant.text))
    return failed(c->cubinTimedOut ? Verdict::Timeout : Verdict::CompileError, std::move(e));
  if (llvm::Error e = modules(*c, variant.text))
    return failed(Verdict::CompileError, std::move(e));
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
          return failed(Verdict::RuntimeError, std::move(rest));
        continue;
      }
      auto own = predict(*c, i, *plan);
      if (!own)
        return failed(Verdict::RuntimeError, own.takeError());
      prediction = *own;
    }
    sum.beginLaunch(launch.weight);
    for (size_t s = 0; s < prediction.steps.size(); ++s)
      sum.addStep(prediction.steps[s], prediction.resources[s]);
  }
  sum.fill(m);
  if (m.verdict == Verdict::Predicted)
    score(m, baselineMeasurement, launchWeights);
  std::lock_guard lock(mutex);
  models[key] = m;
  return m;
}

CpuEvaluator::CpuEvaluator() = default;
CpuEvaluator::~CpuEvaluator() = default;
const Measurement &CpuEvaluator::baseline() const { return impl->baselineMeasurement; }
const std::vector<double> &CpuEvaluator::weights() const { return impl->launchWeights; }

std::vector<std::string> CpuEvaluator::notes() const {
  std::lock_guard lock(impl->mutex);
  return {impl->notes.begin(), impl->notes.end()};
}

std::string CpuEvaluator::verificationSummary() const {
  std::lock_guard lock(impl->mutex);
  return impl->summary;
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
  const char *replay = getenv("OPTIML_REPLAY");
  impl.replayProgram = replay && *replay ? replay : o.toolchain.libDir + "/../bin/optiml-replay";
  o.verify.replayProgram = impl.replayProgram;

  std::shared_ptr<Compiled> original = impl.entry(o.text);
  if (llvm::Error e = impl.cubin(*original, o.text))
    return std::move(e);
  if (llvm::Error e = impl.modules(*original, o.text))
    return std::move(e);
  auto verifier = Verifier::create(
      [&impl](const std::string &variant, const std::vector<std::pair<uint32_t, std::string>> &outputs) {
        return impl.buildModules(variant, outputs);
      },
      o.text, o.verification, o.verify);
  if (!verifier)
    return verifier.takeError();
  impl.verifier = std::move(*verifier);

  WorkloadPrediction sum;
  for (unsigned i = 0; i < o.performance.launches.size(); ++i) {
    const LaunchImage &launch = o.performance.launches[i];
    auto prediction = impl.predict(*original, i, identityPlan(launch, launch.kernel));
    if (!prediction)
      return prediction.takeError();
    impl.originalPredictions.push_back(*prediction);
    impl.launchWeights.push_back(launch.weight);
    sum.beginLaunch(launch.weight);
    for (size_t s = 0; s < prediction->steps.size(); ++s)
      sum.addStep(prediction->steps[s], prediction->resources[s]);
  }
  Measurement &base = impl.baselineMeasurement;
  sum.fill(base);
  if (base.verdict != Verdict::Predicted)
    return makeError("the original cannot be predicted: {0}", base.why);
  base.verdict = Verdict::Correct;
  score(base, base, impl.launchWeights);
  return evaluator;
}

Measurement CpuEvaluator::evaluate(const Variant &variant, Fidelity fidelity) {
  auto start = std::chrono::steady_clock::now();
  if (variant.rewrites.empty())
    return impl->baselineMeasurement;
  Measurement m = impl->model(variant);
  if (fidelity == Fidelity::Verified && m.verdict == Verdict::Predicted) {
    auto report = impl->verifier->verify(variant);
    if (!report) {
      m.verdict = Verdict::RuntimeError;
      m.why = "verification could not run: " + llvm::toString(report.takeError());
    } else {
      m.verdict = report->verdict;
      m.why = report->why;
      std::lock_guard lock(impl->mutex);
      impl->notes.insert(report->notes.begin(), report->notes.end());
      if (report->correct())
        impl->summary = llvm::formatv("{0} launches compared with the original in {1} runs", report->launches, report->runs);
    }
  }
  if (fidelity == Fidelity::Verified)
    impl->drop(variant.text);
  m.cost = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return m;
}
