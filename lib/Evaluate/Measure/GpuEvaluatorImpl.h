//===- GpuEvaluatorImpl.h - the GpuEvaluator's state ------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_MEASURE_GPUEVALUATORIMPL_H
#define OPTIML_LIB_EVALUATE_MEASURE_GPUEVALUATORIMPL_H

#include "Gate.h"
#include "Verify/GpuCases.h"
#include "optiml/Evaluate/Measure/GpuEvaluator.h"
#include "optiml/Gpu/Counters.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/StopWatch.h"
#include "optiml/Support/TempDir.h"
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace optiml {

struct GpuEvaluator::Impl {
  GpuEvaluatorOptions options;
  WorkerPool &pool;
  const GpuSpec *spec = nullptr;
  TempDir dir;
  std::unique_ptr<TextCompiler> compiler;
  std::shared_ptr<const CompiledText> originalText; ///< a worker that is started again loads it again
  std::unique_ptr<Verifier> verifier;               ///< null: the emulator cannot run this program. After isThorough
  std::unique_ptr<Predictor> predictor;             ///< null: it is too slow for that. After canPredict
  Measurement baselineMeasurement;
  std::vector<double> weights;
  std::vector<double> launchSeconds; ///< of the original, by launch; 0: not timed
  std::vector<uint64_t> writtenBytes;
  std::set<std::string> remarks;
  double best = 0;                               ///< seconds of the fastest correct variant so far
  std::vector<double> bestSeconds, leastSeconds; ///< by launch: of that one, and the least of any correct variant
  double profiled = std::numeric_limits<double>::infinity(); ///< of the last one that was profiled
  std::atomic<bool> profiles{true};
  double profilingSeconds = 0; ///< what reading counters of variants should have taken
  std::chrono::steady_clock::time_point measuredOriginal;
  std::mutex mutex;
  std::atomic<unsigned> counter{0};
  std::atomic<std::chrono::steady_clock::time_point> beginBy = std::chrono::steady_clock::time_point::max();

  // What goes on beside the search (Settling.cpp).
  Line line;                           ///< before the workers
  Gate workers;                        ///< closed while they are set up anew
  std::atomic<bool> isThorough{false}; ///< everything that verifying needs is there
  std::atomic<bool> canPredict{false};
  std::promise<bool> started; ///< the original was measured; false: it could not be
  Deadline stopping;          ///< also when the search is cancelled
  Deadline enough;            ///< nothing more is verified
  std::thread preparing;
  std::string broken; ///< why nothing can be verified. Once `preparing` has ended
  struct Provisional {
    Variant variant;
    Measurement measurement;
  };
  std::map<std::string, Provisional> unsettled;  ///< by the variant's key
  std::map<std::string, Measurement> settled;    ///< looked at again
  std::map<std::string, Measurement> objections; ///< not told yet
  std::vector<Verification> verifications;
  /// When settling is to end, once nothing more is measured: max() while the search goes on.
  std::atomic<std::chrono::steady_clock::time_point> closeBy = std::chrono::steady_clock::time_point::max();
  /// And when at last, where something promises much more than what is verified.
  std::atomic<std::chrono::steady_clock::time_point> lateBy = std::chrono::steady_clock::time_point::max();
  bool hasEnded = false; ///< what `preparing` does
  std::condition_variable ended;
  double fastestTold = std::numeric_limits<double>::infinity(), lastGain = fastestTold;
  std::chrono::steady_clock::time_point gainedAt;
  Deadline *sanitizerRun = nullptr;                 ///< of a leader, beside the search. With `mutex`
  std::mutex sanitizing;                            ///< of what follows
  std::map<std::string, SanitizerReport> sanitized; ///< by the variant's key

  Impl(TempDir dir, WorkerPool &pool, GpuEvaluatorOptions options)
      : options(std::move(options)), pool(pool), dir(std::move(dir)), line(pool.size()),
        stopping(0, this->options.common.verify.cancel), enough(0, stopping.flag()) {}
  ~Impl();
  llvm::Error start();
  llvm::Error measureOriginal();
  llvm::Expected<gpu::PrepareRequest> requestOf(GpuCases &cases, bool careful, FreshIntegers integers);
  /// For a start: captured inputs alone.
  llvm::Expected<gpu::PrepareRequest> firstRequest(bool careful);
  llvm::Expected<gpu::PrepareReply> setUp(const std::vector<WorkerPool::MakeRequest> &alternatives);
  /// `isMeasured`: as `started`.
  void prepareThoroughly(std::future<bool> isMeasured);
  void stopPreparing();
  /// A variant that is faster than the original stood every check. With `mutex` held.
  bool hasVerified() const;
  /// What is not verified yet may take less than that part of the time of what is. With `mutex` held.
  bool promises(double part) const;
  /// Verifies the provisional variants that promise most, and then those that are faster than what is verified.
  void settleFastest();
  class Settler;
  void addUnsettled(const Variant &variant, const Measurement &m);
  /// On everything that there is, once.
  Measurement settle(const Variant &variant);
  /// Traces the original, beside the search.
  void preparePredictions();
  /// With `mutex` held.
  void tellGain(const Variant &variant, const Measurement &m);
  /// GpuEvaluator::sanitize, which goes on until `end` at most; what is known of the variant counts.
  SanitizerReport sanitize(const Variant &variant, double seconds, const Deadline &end);
  SanitizerReport sanitizeAnew(const Variant &variant, double seconds, const Deadline &end);
  /// A place at a worker that nobody sets up meanwhile. No more have one than there are workers: who sets them up anew
  /// waits for all of them.
  class Visit {
  public:
    /// `ahead`: of all that wait. False: there was no place by then, or the search was cancelled.
    Visit(Impl &impl, bool ahead, WorkerPool::Clock::time_point by)
        : impl(impl), isInside(impl.line.enter(ahead, by, impl.options.common.verify.cancel)) {
      if (isInside)
        impl.workers.lock_shared();
    }
    Visit(const Visit &) = delete;
    ~Visit() {
      if (!isInside)
        return;
      impl.workers.unlock_shared();
      impl.line.leave();
    }
    explicit operator bool() const { return isInside; }

  private:
    Impl &impl;
    bool isInside;
  };
  llvm::Expected<WorkerPool::Evaluated> evaluate(gpu::EvaluateRequest request, double seconds,
                                                 WorkerPool::Clock::time_point beginBy, bool ahead = false);
  /// Sums the original's times; its launches that ran are a candidate.
  gpu::CandidateRequest addOriginal(const gpu::PrepareReply &prepared, const CompiledText &original);
  llvm::Expected<gpu::CandidateRequest> candidateOf(const Variant &variant, const CompiledText &compiled,
                                                    double &occupancy);
  /// `closely`: a new leader is profiled.
  Measurement measure(const Variant &variant, StopWatch &watch, WorkerPool::Clock::time_point beginBy, bool closely);
  /// Adds a prediction and a profile to what is known of a verified variant.
  void describe(const Variant &variant);
  /// Fills times from a reply; false (and the verdict) when they cannot be.
  bool addTimes(const gpu::CandidateReply &reply, Measurement &m);
  bool mayProfile();
  gpu::CandidateRequest profiledPart(const gpu::CandidateRequest &candidate) const;
  void addProfile(const gpu::CandidateRequest &whole, Measurement &m);
  bool profileByNcu(const std::string &cubin, const gpu::PlannedLaunch &launch, gpu::RawCounters &raw,
                    std::string &why);
  /// How closely each launch of a candidate is to be timed now. With `mutex` held.
  std::vector<gpu::LaunchAim> aimsOf(const gpu::CandidateRequest &candidate) const;
  void addPrediction(const Variant &variant, const CompiledText &compiled, Measurement &m);
  double allowedSeconds() const;
  void note(const std::string &text) {
    std::lock_guard lock(mutex);
    remarks.insert(text);
  }
};

} // namespace optiml

#endif
