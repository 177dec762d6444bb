//===- GpuEvaluatorImpl.h - the GpuEvaluator's state ------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_MEASURE_GPUEVALUATORIMPL_H
#define OPTIML_LIB_EVALUATE_MEASURE_GPUEVALUATORIMPL_H

#include "optiml/Evaluate/Measure/GpuEvaluator.h"
#include "optiml/Gpu/Counters.h"
#include "optiml/Support/StopWatch.h"
#include "optiml/Support/TempDir.h"
#include <mutex>
#include <set>

namespace optiml {

struct GpuEvaluator::Impl {
  GpuEvaluatorOptions options;
  WorkerPool &pool;
  const GpuSpec *spec = nullptr;
  TempDir dir;
  std::unique_ptr<TextCompiler> compiler;
  std::shared_ptr<const CompiledText> originalText; ///< a worker that is started again loads it again
  std::unique_ptr<CpuEvaluator> cpu;                ///< null: the emulator cannot run this program
  Measurement baselineMeasurement;
  std::vector<double> weights;
  std::vector<double> launchSeconds; ///< of the original, by launch; 0: not timed
  std::vector<uint64_t> writtenBytes;
  std::set<std::string> remarks;
  double best = 0; ///< seconds of the fastest correct variant so far
  bool profiles = true;
  std::mutex mutex;
  std::atomic<unsigned> counter{0};
  std::atomic<std::chrono::steady_clock::time_point> beginBy = std::chrono::steady_clock::time_point::max();

  Impl(TempDir dir, WorkerPool &pool) : pool(pool), dir(std::move(dir)) {}
  llvm::Error start();
  llvm::Expected<std::vector<gpu::PrepareRequest>> prepareRequests(const CompiledText &original);
  /// Sums the original's times; its launches that ran are a candidate.
  gpu::CandidateRequest addOriginal(const gpu::PrepareReply &prepared, const CompiledText &original);
  llvm::Expected<gpu::CandidateRequest> candidateOf(const Variant &variant, const CompiledText &compiled,
                                                    double &occupancy);
  Measurement measure(const Variant &variant, StopWatch &watch);
  /// Fills times from a reply; false (and the verdict) when they cannot be.
  bool addTimes(const gpu::CandidateReply &reply, Measurement &m);
  gpu::CandidateRequest profiledPart(const gpu::CandidateRequest &candidate) const;
  void addProfile(const gpu::CandidateRequest &whole, Measurement &m);
  bool profileByNcu(const std::string &cubin, const gpu::PlannedLaunch &launch, gpu::RawCounters &raw,
                    std::string &why);
  void addPrediction(const Variant &variant, const CompiledText &compiled, Measurement &m);
  double allowedSeconds() const;
  void note(const std::string &text) {
    std::lock_guard lock(mutex);
    remarks.insert(text);
  }
};

} // namespace optiml

#endif
