//===- Sanitizer.h - compute-sanitizer on finalists -------------*- C++ -*-===//
#ifndef OPTIML_EVALUATE_MEASURE_SANITIZER_H
#define OPTIML_EVALUATE_MEASURE_SANITIZER_H

#include "optiml/Gpu/Protocol.h"
#include "optiml/Support/Deadline.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <string>
#include <vector>

namespace optiml {

struct SanitizerReport {
  bool clean = true;
  std::vector<std::string> notes; ///< what was found, or why it could not be looked for
};

struct SanitizerJob {
  std::string workload; ///< folder
  std::string cubin;
  gpu::PlannedLaunch launch;
};

/// Runs compute-sanitizer's memcheck, racecheck and initcheck over jobs of a variant. What a tool also says of the
/// original's `originals` (the same launches) is not held against the variant.
class Sanitizer {
public:
  /// `program`: compute-sanitizer; empty or missing: nothing is looked for, with a note. `worker`: optiml-worker.
  /// `seconds`: limit of one tool, its starts included.
  Sanitizer(std::string program, std::vector<std::string> worker, std::string folder, const std::atomic<bool> *cancel,
            double seconds)
      : program(std::move(program)), worker(std::move(worker)), folder(std::move(folder)), cancel(cancel),
        seconds(seconds) {}
  SanitizerReport check(const std::vector<SanitizerJob> &jobs, const std::vector<SanitizerJob> &originals);

private:
  /// The first finding in one line; empty: none. `failed`: the tool could not run, and why.
  std::string run(const std::string &tool, llvm::ArrayRef<SanitizerJob> jobs, const Deadline &end, std::string &failed);
  std::string program;
  std::vector<std::string> worker;
  std::string folder;
  const std::atomic<bool> *cancel;
  double seconds;
  std::atomic<unsigned> counter{0};
};

} // namespace optiml

#endif
