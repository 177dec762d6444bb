//===- CpuEvaluator.h - evaluating variants without a GPU -------*- C++ -*-===//
//
// compile (nvcc -cubin) -> predict (traces of sampled blocks + performance model) -> verify (emulator) -> reward.
// Every time it gives is a prediction. Predictions are kept by variant, so that a Verified evaluation after a Model one
// costs only the verification.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_CPUEVALUATOR_H
#define OPTIML_EVALUATE_PREDICT_CPUEVALUATOR_H

#include "optiml/Evaluate/Predict/Predictor.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"

namespace optiml {

struct CpuEvaluatorOptions : PredictorOptions {
  std::vector<Workload> verification; ///< launches that must come out the same
  /// Kernels of the performance launches that smaller ones are made of, which must, too, and how long that may take.
  std::vector<SizedKernel> sizedKernels;
  double derivingSeconds = 5;
  DeviceText device; ///< of the program: what NVRTC compiles; may be empty
};

class CpuEvaluator : public Evaluator {
public:
  /// Traces and compiles the original; an error means that there is nothing to compare with.
  static llvm::Expected<std::unique_ptr<CpuEvaluator>> create(CpuEvaluatorOptions options);
  ~CpuEvaluator() override;
  /// Verified measurements have the counters verify.launches and verify.runs: how many captured launches were compared
  /// with the original, in how many runs.
  Measurement evaluate(const Variant &variant, Fidelity fidelity) override;
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
