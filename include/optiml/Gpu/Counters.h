//===- Counters.h - hardware counters and what they mean --------*- C++ -*-===//
//
// Which metrics are read from a GPU, and what they say of a kernel. Both ways to read them (CUPTI's range profiler in
// process, Nsight Compute as a program) give the same "raw" map, from the metric's full name, as NVIDIA writes it, to
// its value: nanoseconds, bytes, counts, percent. Needs neither LLVM nor CUDA.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_COUNTERS_H
#define OPTIML_GPU_COUNTERS_H

#include <map>
#include <string>
#include <vector>

namespace optiml::gpu {

using RawCounters = std::map<std::string, double>;

struct CounterMetric {
  const char *name;   ///< ours, short
  const char *metric; ///< CUPTI's and Nsight Compute's
  const char *tells;  ///< what it diagnoses
  bool additive;      ///< over several kernels: a sum; else a mean weighted by their time
};

/// Every metric that is asked for. All of them are read in 7 passes over a kernel on GH100, GB100, AD10x and GB20x, and
/// in 8 on GA100 and TU10x. Those of whole throughputs (sm__throughput, lts__throughput, …) are left out because one of
/// them takes 4 to 8 passes: the few counters below them that saturate in compute kernels are read instead.
const std::vector<CounterMetric> &counterMetrics();
/// The one of that short name, or null.
const CounterMetric *findCounterMetric(const std::string &name);

/// The key of raw maps, not a metric, under which combine() counts the kernels.
inline constexpr const char *kernelsKey = "kernels";

/// One raw map of the kernels of one launch: sums added, the others weighted by time.
RawCounters combine(const std::vector<RawCounters> &kernels);

struct DiagnosisSettings {
  /// The share of its peak from which on a unit is what limits the kernel. NVIDIA's guided analysis calls a kernel
  /// bound by latency when neither memory nor arithmetic reach 60 %, and a unit saturated from 80 %.
  double busy = 0.6;
  /// A kernel of which no unit is busy and that takes no longer than this only pays for its launch.
  double launchSeconds = 2e-6;
  /// Bytes that must come from or go to DRAM at least, if known: "roofline" is not told without it.
  double compulsoryBytes = 0;
};

/// Counters of a launch, by the names the reward and the proposers know; what was not read is absent.
///
///   seconds, kernels
///   dram_bytes, l2_bytes, warp_instructions, global_requests
///   {dram,l2,l1,atomic,issue,fp32,fp64,tensor,int32,special}_utilization     share of the unit's peak, 0 to 1
///   time.<the same>              seconds that the unit alone would take: utilization · seconds
///   occupancy_achieved           resident warps / maximum, while there are any
///   divergence                   mean share of lanes that are active in an instruction: 1 is none diverged
///   sectors_per_request, sector_efficiency (bytes asked for / bytes moved, at most 1), l2_hit_rate
///   shared_requests, bank_conflicts_per_request
///   local_memory_instructions    warp accesses to local memory: spills and arrays that are not in registers
///   stall.<reason>               share of the warps' time that they wait for it
///   speed_of_light               the largest of the utilizations
///   roofline                     share of the floor: compulsory DRAM traffic or executed arithmetic
struct KernelCounters {
  RawCounters raw;
  std::map<std::string, double> counters;
  std::string bottleneck; ///< the unit, "latency" or "launch"; empty when the metrics that tell were not read
  std::string reason;     ///< in words
};

KernelCounters diagnose(const RawCounters &raw, const DiagnosisSettings &settings = {});

/// What to do when the driver refuses counters, in one line.
const char *counterPermissionHint();

} // namespace optiml::gpu

#endif
