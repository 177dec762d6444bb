//===- Protocol.h - what a GPU worker is asked and answers ------*- C++ -*-===//
//
// optiml-worker reads one request a line and answers each with one line, both JSON; docs/formats.md describes them. The
// worker greets with a line about its GPU. Files are named by path, so a worker on another machine (behind ssh or srun)
// needs a shared file system. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_PROTOCOL_H
#define OPTIML_GPU_PROTOCOL_H

#include "optiml/Workload/Replay.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace optiml::gpu {

constexpr unsigned protocolVersion = 1;

struct DeviceInfo {
  std::string name;     ///< "NVIDIA H200"
  std::string chip;     ///< CUPTI's name for it ("GH100"); empty without CUPTI
  unsigned arch = 0;    ///< compute capability × 10
  unsigned driver = 0;  ///< newest CUDA version that the driver supports: 13000
  unsigned devices = 1; ///< GPUs visible, this one among them
  unsigned multiprocessors = 0;
  uint64_t memoryBytes = 0, l2Bytes = 0;
};

/// How cells of a buffer are compared.
enum class Compare { Bits, Float, Double, Half, BFloat16 };

/// When a floating-point result counts as equal: within relative · max(|expected|, typical) of what the original gave.
/// Those of 16 bits may also be two units in the last place from it.
struct BufferBound {
  unsigned buffer = 0;
  Compare compare = Compare::Bits;
  double relative = 0; ///< 0: bit for bit
  double typical = 0;  ///< magnitude of the buffer's terms; negative: unknown, the largest finite result stands in
  /// File of CheckedCell: cells whose double-precision value is known. Empty: none.
  std::string cells;
};

/// One cell recomputed in double precision.
struct CheckedCell {
  uint64_t offset; ///< in bytes
  uint32_t bytes;  ///< 4: float, 8: double
  uint32_t unused = 0;
  double value;     ///< in double precision
  double tolerance; ///< allowed distance from it, or from the original's own result
};
static_assert(sizeof(CheckedCell) == 32);

/// One input on which a captured launch is compared.
struct CaseRequest {
  unsigned launch = 0;
  std::string name;                       ///< "captured launch 3"
  std::map<unsigned, std::string> inputs; ///< buffer -> file with other contents than the captured ones
  std::vector<BufferBound> bounds;        ///< of buffers that are not compared bit for bit
};

struct LoadRequest {
  std::string workload; ///< folder
  uint64_t seed = 1;
};
struct LoadReply {
  std::string why;                   ///< empty: done
  std::vector<std::string> unusable; ///< one a launch: why it cannot be replayed, or empty
  std::vector<std::string> notes;
};

/// Runs the original on every case and keeps the results as references.
struct PrepareRequest {
  std::string cubin;
  std::vector<CaseRequest> cases;
  bool careful = false; ///< poison only buffers of floating-point numbers (integers may be indices)
  bool cold = false;    ///< time with an empty L2 cache
};
struct PreparedLaunch {
  unsigned launch = 0;
  double seconds = 0;        ///< median of the original
  double spread = 0;         ///< relative, of its repetitions
  uint64_t writtenBytes = 0; ///< that the original changed
  bool deterministic = true;
  std::vector<unsigned> poisoned; ///< buffers whose old contents do not matter
};
struct PrepareReply {
  std::string why;
  std::vector<std::string> unusable; ///< one a case: why it cannot be compared, or empty
  std::vector<PreparedLaunch> launches;
  std::vector<std::string> notes;
};

/// One captured launch as a variant makes it.
struct PlannedLaunch {
  unsigned launch = 0;
  std::vector<emu::ReplayScratch> scratch;
  std::vector<emu::ReplayStep> steps; ///< kernels by mangled name
};
struct CandidateRequest {
  std::string cubin;
  std::vector<PlannedLaunch> launches;
};

/// How closely one launch is timed.
struct LaunchAim {
  unsigned launch = 0;
  double precision = 0.01; ///< stop when the interval of the ratio is this narrow, relatively
  double rival = 0;        ///< or when it lies below what another variant reached, clearly; 0: there is none
};
struct EvaluateRequest {
  std::vector<CandidateRequest> candidates; ///< raced against the original, and each other
  bool verify = true;
  unsigned fewestRounds = 2; ///< even when time is up
  unsigned leastRounds = 5, mostRounds = 50;
  double precision = 0.01;     ///< stop when the interval of the ratio is this narrow, relatively
  double seconds = 0.15;       ///< of timing, for each launch, with restoring and comparing
  double hopeless = 0;         ///< stop early when a launch runs at less than this speed-up; 0: never
  std::vector<LaunchAim> aims; ///< of launches that differ from `precision`; with them the original runs less often
                               ///< where it takes much longer
};
struct LaunchTiming {
  unsigned launch = 0;
  double seconds = 0;       ///< median
  double baseline = 0;      ///< median of the original in the same rounds
  double ratio = 0;         ///< median of baseline / variant over rounds
  double low = 0, high = 0; ///< 95 % interval of that median
  unsigned rounds = 0;
};
struct CandidateReply {
  std::string verdict; ///< verdictName(): correct, wrong-result, runtime-error, timeout, over-limit, not-applicable
  std::string why;
  unsigned launches = 0, runs = 0; ///< compared
  std::vector<LaunchTiming> times;
};
struct EvaluateReply {
  std::string why; ///< the request as a whole failed
  std::vector<CandidateReply> candidates;
  bool lost = false; ///< the context is broken: the worker ends after this
};

struct ProfileRequest {
  CandidateRequest candidate;
};
struct ProfileReply {
  std::string why;                                     ///< why there are no counters
  std::vector<std::map<std::string, double>> launches; ///< CUPTI metrics of each planned launch
};

/// One line, without its end. Requests gain "do", the name of what is asked. T: DeviceInfo, or a request or reply
/// above.
template <typename T> std::string encode(const T &value);
/// False, and `error`, when the line is no such message.
template <typename T> bool decode(const std::string &line, T &into, std::string &error);

/// The "do" of a request; empty when it is none.
std::string requestName(const std::string &line);

} // namespace optiml::gpu

#endif
