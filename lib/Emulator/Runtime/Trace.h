//===- Trace.h - per-warp access traces for the performance model *- C++ -*-===//
//
// ModeTrace. Every thread logs its accesses; when its block ends, the lanes of each warp are joined by (site,
// occurrence) into warp accesses and counted. A cache simulation over all traced blocks, warps taking turns, follows at
// the end.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_TRACE_H
#define OPTIML_LIB_EMULATOR_RUNTIME_TRACE_H

#include "Scheduler.h"
#include "optiml/Workload/Replay.h"
#include <unordered_set>

namespace optiml::emu {

/// One access of one thread.
struct TraceEvent {
  uint64_t address;
  uint32_t site, bytes;
};

/// What a block's threads log.
struct BlockTrace {
  std::vector<std::vector<TraceEvent>> threads;
  std::vector<uint64_t> seen; ///< accesses of each thread, logged or not
  size_t perThreadLimit = 0;
};

/// One warp access to global memory, for the cache: its distinct 32-byte sectors are sectors[first, first + count).
struct WarpAccess {
  uint32_t first, count;
  uint32_t site;
};

/// All traced blocks of one launch.
struct TraceCollector {
  LaunchTrace result;
  uint64_t l1Bytes = 192 << 10;
  std::unordered_set<uint64_t> *footprint = nullptr; ///< sectors of all steps of a replay

  // For the cache: each warp's accesses in order, of all blocks.
  std::vector<std::vector<WarpAccess>> warps;
  std::vector<uint64_t> sectors;
  double warpCount = 0, laneInstructions = 0, warpInstructions = 0;
  std::vector<double> blockRuns; ///< by BlockDesc: how often warps ran it

  void addBlock(Block &block);
  void countAtomicLines();
  /// Simulates the cache and completes `result`.
  void finish(const Launch &launch);
};

void prepareTrace(Block &block);
void startTrace(Block &block);
void finishTrace(Block &block);
void deleteBlockTrace(BlockTrace *trace);
void traceAccess(Fiber &fiber, uint64_t address, uint64_t bytes, uint32_t site);

/// A warp's instructions of all classes, each time that it runs the basic block.
double instructionsOf(const BlockDesc &block);

} // namespace optiml::emu

#endif
