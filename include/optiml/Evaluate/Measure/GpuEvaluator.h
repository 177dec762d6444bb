//===- GpuEvaluator.h - evaluating variants on a GPU ------------*- C++ -*-===//
//
// A variant is compiled by nvcc, compared with the original in the emulator (on the launches that are small enough) and
// on the GPU (on every captured launch), and timed against the original. What is measured stands beside what the
// performance model predicts.
//
// The emulator, the results in double precision and the made-up inputs take long to prepare. Until they are ready,
// variants are compared on the captured inputs with a general tolerance, and their measurements are provisional. Then
// the fastest of these are looked at again.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_MEASURE_GPUEVALUATOR_H
#define OPTIML_EVALUATE_MEASURE_GPUEVALUATOR_H

#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "optiml/Evaluate/Measure/WorkerPool.h"
#include "optiml/Evaluate/Predict/CpuEvaluator.h"
#include <limits>

namespace optiml {

/// How hardware counters are read.
enum class Profiler { Cupti, NsightCompute, None };

struct GpuEvaluatorOptions {
  /// The performance launches are those captured on the GPU; the verification launches, small ones for the emulator,
  /// may be none.
  CpuEvaluatorOptions common;
  Profiler profiler = Profiler::Cupti;
  bool cold = false;                                             ///< time with an empty L2 cache
  double setUpSeconds = std::numeric_limits<double>::infinity(); ///< limit of preparing the original on the GPUs
  double sampleSeconds = 8; ///< limit of recomputing some blocks of one launch in double precision
  /// Hardware counters are read where that is expected to take no longer.
  double profileSeconds = std::numeric_limits<double>::infinity();
  /// The original, where it is compiled already, and its compiler.
  std::unique_ptr<TextCompiler> compiler;
  std::shared_ptr<const CompiledText> original;
  /// A variant is so many times as fast as the original, and faster than all before it, or the first that is verified.
  /// From any thread.
  std::function<void(const Variant &variant, double speedup, bool isVerified)> gained;
};

/// What the last race between the best variants found.
struct FinalRace {
  struct Runner {
    size_t candidate = 0; ///< index
    Measurement measurement;
    double speedup = 0, low = 0, high = 0; ///< of the workload's kernels: median and 95 % interval
  };
  std::vector<Runner> runners; ///< that came out right
  std::vector<std::string> notes;
  double fastest() const;
};

/// How the verification of a variant that had been measured ended.
struct Verification {
  Recipe recipe;
  Verdict verdict = Verdict::Untested;
  std::string why;    ///< where it does not stand
  double seconds = 0; ///< that it took
};

class GpuEvaluator : public Evaluator {
public:
  /// Sets the pool's workers up with the original. An error means that there is nothing to compare with.
  static llvm::Expected<std::unique_ptr<GpuEvaluator>> create(GpuEvaluatorOptions options, WorkerPool &pool);
  ~GpuEvaluator() override;

  /// Counters of a measured variant beside the hardware's (Counters.h): "speedup.low", "speedup.high" (95 % interval of
  /// the speed-up), "rounds", "predicted_seconds" (where the model could tell), "verify.launches", "verify.runs" (with
  /// the emulator's once it is verified).
  /// Where the time went, also of one that failed: "cost.compile", "cost.gpu" (waiting for it included) and
  /// "cost.profile" (of a new best), in seconds. Of the baseline: "cost.prepare", "cost.setup", "cost.profile".
  Measurement evaluate(const Variant &variant, Fidelity fidelity) override;
  void beginNothingAfter(std::chrono::steady_clock::time_point time) override;
  std::map<std::string, Measurement> withdrawn() override;
  /// The search has ended. Waits while variants that may win are verified: until then, or, as long as none stood every
  /// check, until one does. One that promises much more than what is verified may go on until `late`.
  void close(std::chrono::steady_clock::time_point by, std::chrono::steady_clock::time_point late);
  /// The search has ended without a gain: nothing more is verified, and the GPU is free.
  void abandon();
  /// Compilations end when the flag is raised; null: they take the time that they need.
  void compileUntil(const std::atomic<bool> *ended);
  /// It stood every check.
  bool isVerified(const Variant &variant) const;
  /// After close(): the measurement of a variant that stands every check. "Untested" when close() ran out of time.
  Measurement confirm(const Variant &variant);
  /// Adds what takes some seconds to what confirm() answers of a verified variant: a prediction and hardware counters.
  void describe(const Variant &variant);
  const Measurement &baseline() const;
  /// After close(): races the candidates against the original again, longer, in random order, for so many seconds.
  FinalRace race(const std::vector<std::pair<const Variant *, Measurement>> &candidates, double seconds);
  /// compute-sanitizer on the launches of the variant's kernels, small ones where there are any. `seconds`: limit of
  /// its tools, which run side by side: a launch is 10 to 100 times slower under them. Nothing is timed meanwhile.
  SanitizerReport sanitize(const Variant &variant, double seconds);
  std::vector<std::string> originalFaults() const;
  std::vector<std::string> notes() const;
  /// What became of the variants that were looked at again, in the order in which that ended.
  std::vector<Verification> verifications() const;

private:
  GpuEvaluator();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace optiml

#endif
