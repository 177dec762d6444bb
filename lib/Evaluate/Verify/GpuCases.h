//===- GpuCases.h - what a launch is compared on, on a GPU ------*- C++ -*-===//
//
// The inputs of a captured launch (its own, and fresh ones) and how far floating-point results may be off. Running a
// large launch in double precision on the CPU would take too long: some of its blocks are recomputed in the emulator,
// their cells get the bound that the emulator's verifier uses, and the rest of the buffer is held to the largest
// tolerance that these cells have.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_GPUCASES_H
#define OPTIML_LIB_EVALUATE_VERIFY_GPUCASES_H

#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Gpu/Protocol.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Signature.h"
#include <atomic>
#include <mutex>
#include <set>

namespace optiml {

class GpuCases {
public:
  /// `shadowModule`: of the original, for the emulator; empty when it cannot be built (then only signatures tell what
  /// is a floating-point number). `directory` keeps the files that the requests name; `seconds` limits recomputing some
  /// blocks of one launch on one input.
  GpuCases(const Workload &workload, const VerifyOptions &options, std::string shadowModule, std::string directory,
           double seconds)
      : workload(workload), options(options), shadowModule(std::move(shadowModule)), directory(std::move(directory)),
        sampleSeconds(seconds) {}

  /// Of every launch: its captured input and `options.freshInputs` fresh ones (of a kernel's later launches only while
  /// that is not too much data), whose integers become others as told. Uses all cores.
  llvm::Expected<std::vector<gpu::CaseRequest>> ofAllLaunches(FreshIntegers integers);

  /// Launches whose blocks could not be recomputed, and why.
  const std::vector<std::string> &notes() const { return remarks; }

private:
  bool getsFreshInputs(unsigned launch) const;
  llvm::Expected<std::vector<gpu::CaseRequest>> casesOf(unsigned launch, FreshIntegers integers);
  std::vector<gpu::BufferBound> bounds(unsigned launch, const std::map<unsigned, std::string> &inputs);
  void recompute(unsigned launch, const std::map<unsigned, std::string> &inputs, std::vector<gpu::BufferBound> &bounds);
  /// `file`: where a replay of which `begun` blocks began left the buffer (.bin) and its twins (.shadow).
  void boundByTwins(unsigned launch, bool isFresh, const std::string &file, uint64_t begun, gpu::BufferBound &bound);
  bool isSummed(unsigned launch, unsigned buffer);

  const Workload &workload;
  const VerifyOptions &options;
  std::string shadowModule, directory;
  const double sampleSeconds;
  std::vector<std::string> remarks;
  std::map<std::string, std::vector<gpu::BufferBound>> known; ///< by launch and inputs
  std::set<std::pair<unsigned, unsigned>> summed;             ///< launch and buffer: cells that all blocks add to
  std::set<unsigned> tooLong;                                 ///< launches whose blocks could not be recomputed
  std::mutex mutex;                                           ///< of the members above
  std::atomic<unsigned> counter{0};
};

} // namespace optiml

#endif
