//===- CpuEvaluator.cpp - evaluating variants without a GPU ---------------===//
#include "optiml/Evaluate/Predict/CpuEvaluator.h"
#include <chrono>
#include <map>
#include <mutex>

using namespace optiml;

struct CpuEvaluator::Impl {
  TempDir dir; ///< of launches that were made
  std::unique_ptr<TextCompiler> compiler;
  std::unique_ptr<Predictor> predictor;
  std::unique_ptr<Verifier> verifier;
  std::map<std::string, Measurement> models; ///< by variant key
  std::mutex mutex;                          ///< of the models

  explicit Impl(TempDir dir) : dir(std::move(dir)) {}
  Measurement model(const Variant &variant);
};

/// Compile and predict; the verdict is Predicted unless something is wrong.
Measurement CpuEvaluator::Impl::model(const Variant &variant) {
  std::string key = variant.key();
  {
    std::lock_guard lock(mutex);
    if (auto it = models.find(key); it != models.end())
      return it->second;
  }
  Verdict verdict;
  auto compiled = compiler->compile(variant, verdict);
  if (!compiled) {
    Measurement m;
    m.verdict = verdict;
    m.why = llvm::toString(compiled.takeError());
    return m;
  }
  Measurement m = predictor->predict(variant, **compiled);
  std::lock_guard lock(mutex);
  models[key] = m;
  return m;
}

CpuEvaluator::CpuEvaluator() = default;
CpuEvaluator::~CpuEvaluator() = default;
const Measurement &CpuEvaluator::baseline() const { return impl->predictor->baseline(); }
const std::vector<double> &CpuEvaluator::weights() const { return impl->predictor->weights(); }
std::vector<std::string> CpuEvaluator::originalFaults() const { return impl->verifier->originalFaults(); }
std::vector<std::string> CpuEvaluator::notes() const { return impl->verifier->notes(); }

llvm::Expected<std::unique_ptr<CpuEvaluator>> CpuEvaluator::create(CpuEvaluatorOptions o) {
  auto dir = TempDir::create("optiml-evaluate");
  if (!dir)
    return dir.takeError();
  std::unique_ptr<CpuEvaluator> evaluator(new CpuEvaluator);
  evaluator->impl = std::make_unique<Impl>(std::move(*dir));
  Impl &impl = *evaluator->impl;
  auto compiler = TextCompiler::create(o.toolchain, o.path, o.compile, o.verify.cancel);
  if (!compiler)
    return compiler.takeError();
  impl.compiler = std::move(*compiler);
  Verdict verdict;
  auto original = impl.compiler->compile(o.text, verdict);
  if (!original)
    return original.takeError();
  impl.compiler->useDeviceText(std::move(o.device), *original);
  auto verifier = Verifier::create(o.toolchain, o.path, o.text, o.compile, std::move(o.verification), o.verify);
  if (!verifier)
    return verifier.takeError();
  impl.verifier = std::move(*verifier);
  if (llvm::Error e = impl.verifier->addDerivedSizes(o.performance, o.sizedKernels, impl.dir.path(), o.derivingSeconds))
    return std::move(e);
  impl.verifier->addLarge(o.performance);
  auto predictor = Predictor::create(std::move(o), **original);
  if (!predictor)
    return predictor.takeError();
  impl.predictor = std::move(*predictor);
  return evaluator;
}

Measurement CpuEvaluator::evaluate(const Variant &variant, Fidelity fidelity) {
  auto start = std::chrono::steady_clock::now();
  if (variant.rewrites.empty())
    return baseline();
  Measurement m = impl->model(variant);
  if (fidelity == Fidelity::Verified && m.verdict == Verdict::Predicted)
    impl->verifier->verify(variant, m);
  m.cost = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return m;
}
