//===- PerformanceModel.h - seconds without a GPU ---------------*- C++ -*-===//
//
// Predicts the time of one launch from a trace of some of its blocks (emu::LaunchTrace), ptxas's resources, the
// geometry and a GpuSpec, after Warpspeed (Ernst et al., arXiv 2204.14242). A pure function.
//
// For every pipe a time is found as if it were alone:
//
//   issue, fp32, fp64, int32, special, tensor   warp instructions / (rate · clock), on the busiest multiprocessor
//   l1        cycles of L1 and shared memory: data width, tags and bank conflicts are in the trace
//   l2        sectors that miss L1, and stores, / bandwidth
//   dram      compulsory traffic, plus what is asked again after it fell out of L2, / bandwidth
//   latency   a warp's chain of dependent loads, barriers and arithmetic · rounds of resident warps
//   atomic    read-modify-writes in L2; those of one warp on one address go one after the other
//
// and the launch takes (Σ tᵢ^p)^(1/p) plus the launch itself: the slowest pipe, and a little for those close behind.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_PERFORMANCEMODEL_H
#define OPTIML_EVALUATE_PREDICT_PERFORMANCEMODEL_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Workload/Replay.h"
#include <array>
#include <map>
#include <string>
#include <vector>

namespace optiml {

/// Blocks that fit on a multiprocessor together (cuda_occupancy.h).
struct Occupancy {
  unsigned blocksPerSM = 0; ///< 0: such a block cannot run
  double share = 0;         ///< resident warps / maximum
  std::string limit;        ///< what limits it: "warps", "registers", "shared memory", "blocks"; or why it cannot run
};
Occupancy computeOccupancy(const GpuSpec &gpu, const Resources &resources, unsigned threadsPerBlock,
                           uint64_t dynamicShared);

struct LaunchShape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamicShared = 0;
  /// Bytes of all buffers that the launch may reach: no footprint is larger. 0: unknown.
  double bufferBytes = 0;
  /// Data that fits there is found in the L2 cache, where the launch before left it: its floor is that of L2.
  bool warmL2 = false;
};

struct Prediction {
  double seconds = 0;
  std::map<std::string, double> pipes; ///< seconds of each pipe alone
  std::string bottleneck;              ///< the slowest pipe; "launch" when none takes longer than the launch itself
  Occupancy occupancy;
  double floorSeconds = 0; ///< compulsory bytes and executed arithmetic at full rate: nothing runs faster than this
  double dramBytes = 0, l2Bytes = 0, l1Cycles = 0, warpInstructions = 0;
  double globalAccesses = 0, globalSectors = 0,
         usefulBytes = 0; ///< warp accesses, their sectors, bytes lanes asked for
  double sharedAccesses = 0, bankConflicts = 0;
  std::string infeasible; ///< why it cannot run, or empty
};

Prediction predictLaunch(const emu::LaunchTrace &trace, const Resources &resources, const LaunchShape &shape,
                         const GpuSpec &gpu);

/// Which blocks of a launch to trace: those that share a multiprocessor (block i runs on multiprocessor i modulo their
/// number), in a middle round, at most `most` of them, with their share of its L1.
struct TracePlan {
  std::vector<uint32_t> blocks; ///< linear numbers, never empty for a grid that is not
  uint64_t l1Bytes = 0;
  uint64_t round = 0; ///< blocks that run at first, all multiprocessors together
};
TracePlan planTrace(const GpuSpec &gpu, const Resources &resources, const LaunchShape &shape, unsigned most);

/// Adds up the predictions of a workload into a Measurement: times weighted by how often the program makes the launch.
class WorkloadPrediction {
public:
  /// A launch class; the steps that follow belong to it.
  void beginLaunch(double weight);
  void addStep(const Prediction &prediction, const Resources &resources);
  /// Fills time.seconds, time.perLaunch, counters, bottleneck and resources, and verdict Predicted, or OverLimit with
  /// the reason when a step cannot run. Counters, weighted over the workload: "time.<pipe>" (seconds), "dram_bytes",
  /// "l2_bytes", "l1_cycles", "warp_instructions", "sectors_per_request", "sector_efficiency" (bytes asked for / bytes
  /// moved, at most 1), "bank_conflicts_per_request", "occupancy", "roofline" (floor / predicted).
  void fill(Measurement &measurement) const;

private:
  struct Launch {
    double weight, seconds;
  };
  std::vector<Launch> launches;
  std::map<std::string, double> sums;
  std::map<std::string, double> pipeSeconds, bottleneckSeconds;
  double seconds = 0;
  Resources worst;
  std::string infeasible;
};

} // namespace optiml

#endif
