//===- CpuEvaluator.h - evaluating variants without a GPU -------*- C++ -*-===//
//
// compile (nvcc -cubin) -> predict (traces of sampled blocks + performance model) -> verify (emulator) -> reward.
// Every time it gives is a prediction. Predictions are kept by variant, so that a Verified evaluation after a Model one
// costs only the verification.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_CPUEVALUATOR_H
#define OPTIML_EVALUATE_PREDICT_CPUEVALUATOR_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Evaluate/Predict/Compile.h"
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Workload/Workload.h"
#include <memory>

namespace optiml {

struct CpuEvaluatorOptions {
  Toolchain toolchain;
  CompileOptions compile;
  std::string path, text;             ///< the original
  Workload performance;               ///< launches whose time counts
  std::vector<Workload> verification; ///< launches that must come out the same
  VerifyOptions verify;
  const GpuSpec *gpu = nullptr; ///< null: the one for the command line's architecture
  bool warmL2 = false;          ///< LaunchShape::warmL2
  unsigned tracedBlocks = 4;    ///< of each launch
  double traceSeconds = 20;     ///< limit of one trace
};

class CpuEvaluator : public Evaluator {
public:
  /// Traces and compiles the original; an error means that there is nothing to compare with.
  static llvm::Expected<std::unique_ptr<CpuEvaluator>> create(CpuEvaluatorOptions options);
  ~CpuEvaluator() override;
  /// Verified measurements have the counters verify.launches and verify.runs: how many captured launches were compared
  /// with the original, in how many runs.
  Measurement evaluate(const Variant &variant, Fidelity fidelity) override;
  /// Prediction only, of a variant that was compiled already.
  Measurement predict(const Variant &variant, const CompiledText &compiled);
  /// Comparison only: sets the verdict, the reason and the counters verify.launches and verify.runs.
  void verify(const Variant &variant, Measurement &into);
  /// The original, predicted.
  const Measurement &baseline() const;
  /// Weights of the performance launches, in order.
  const std::vector<double> &weights() const;
  /// What the original program does wrong itself (a data race, say), each once.
  std::vector<std::string> originalFaults() const;
  /// What every verification so far could not check, each once.
  std::vector<std::string> notes() const;

private:
  CpuEvaluator();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace optiml

#endif
