//===- Predictor.h - how long a launch takes on a GPU -----------*- C++ -*-===//
//
// The emulator traces some blocks of each launch, and the performance model tells the time. Nothing is compared.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_PREDICTOR_H
#define OPTIML_EVALUATE_PREDICT_PREDICTOR_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Evaluate/Predict/Compile.h"
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Workload/Workload.h"
#include <memory>

namespace optiml {

struct PredictorOptions {
  Toolchain toolchain;
  CompileOptions compile;
  std::string path, text; ///< the original
  Workload performance;   ///< launches whose time counts
  VerifyOptions verify;
  const GpuSpec *gpu = nullptr; ///< null: the one for the command line's architecture
  bool warmL2 = false;          ///< LaunchShape::warmL2
  unsigned tracedBlocks = 4;    ///< of each launch
  double traceSeconds = 20;     ///< limit of one trace
};

/// Safe to use from several threads.
class Predictor {
public:
  /// Traces the original, which is compiled. An error means that there is nothing to compare with.
  static llvm::Expected<std::unique_ptr<Predictor>> create(PredictorOptions options, const CompiledText &original);
  ~Predictor();
  /// The verdict is Predicted unless something is wrong.
  Measurement predict(const Variant &variant, const CompiledText &compiled);
  /// The original, predicted.
  const Measurement &baseline() const;
  /// Weights of the performance launches, in order.
  const std::vector<double> &weights() const;

private:
  Predictor();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Seconds of all launches of the original.
llvm::Expected<double> predictOriginal(PredictorOptions options);

} // namespace optiml

#endif
