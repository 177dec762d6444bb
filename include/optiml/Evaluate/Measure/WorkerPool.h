//===- WorkerPool.h - optiml-worker processes, one a GPU --------*- C++ -*-===//
//
// A candidate that faults, hangs or corrupts its context takes only its worker down: the pool starts another, gives it
// the workload again, and the search goes on. A worker that dies without an answer is not yet the candidate's fault (it
// may have been killed): the same request is tried once more.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_MEASURE_WORKERPOOL_H
#define OPTIML_EVALUATE_MEASURE_WORKERPOOL_H

#include "optiml/Gpu/Protocol.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace optiml {

struct WorkerPoolOptions {
  std::vector<std::string> command; ///< of a worker; "--device=N" is appended
  unsigned devices = 0;             ///< at most this many GPUs; 0: all of the first one's kind
  const std::atomic<bool> *cancel = nullptr;
};

class WorkerPool {
public:
  /// The command of a worker: $OPTIML_WORKER (split at blanks; "ssh gpu1 optiml-worker"), or optiml-worker in
  /// the `binDir` folder.
  static std::vector<std::string> workerCommand(const std::string &binDir);

  /// Starts a worker on every GPU that is like the first. The error says why no GPU can be used.
  static llvm::Expected<std::unique_ptr<WorkerPool>> create(WorkerPoolOptions options);
  ~WorkerPool();

  const gpu::DeviceInfo &device() const;
  unsigned size() const;

  /// Loads the workload and prepares the original on every worker; a second time on new workers, while nothing is
  /// evaluated or profiled. `alternatives` are made and tried in order until one does not
  /// break the worker (integers that become other integers may be indices), for `seconds` in all. The error says why
  /// the last one failed.
  using MakeRequest = std::function<llvm::Expected<gpu::PrepareRequest>()>;
  llvm::Expected<gpu::PrepareReply> setUp(const gpu::LoadRequest &load, const std::vector<MakeRequest> &alternatives,
                                          std::vector<std::string> &notes, double seconds);

  /// On whichever GPU is free. The reply's `why` is set when the worker died twice or did not answer in time
  /// (`timedOut`). The error: there is no working GPU any more, the search was cancelled, or none was free by
  /// `beginBy`.
  struct Evaluated {
    gpu::EvaluateReply reply;
    bool timedOut = false;
  };
  using Clock = std::chrono::steady_clock;
  llvm::Expected<Evaluated> evaluate(const gpu::EvaluateRequest &request, double seconds,
                                     Clock::time_point beginBy = Clock::time_point::max());
  llvm::Expected<gpu::ProfileReply> profile(const gpu::ProfileRequest &request, double seconds);

  /// How many workers had to be replaced.
  unsigned restarts() const;

  /// How many requests each GPU answered, without those of setUp().
  std::vector<unsigned> answers() const;

private:
  WorkerPool();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace optiml

#endif
