//===- Scheduler.h - blocks, warps and launches -----------------*- C++ -*-===//
//
// A launch hands its blocks out in order to workers, one per core. A kernel that never waits for other threads runs as
// a loop over the threads of a block. Any other gets one fiber a thread; fibers switch only at barriers, warp
// operations and yields. A block in which every thread is only polling memory is set aside, and its worker takes up
// another one, so that spin-waits on other blocks make progress on any number of cores.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_SCHEDULER_H
#define OPTIML_LIB_EMULATOR_RUNTIME_SCHEDULER_H

#include "Fiber.h"
#include "Memory.h"
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace optiml::emu {

struct LaunchRaces;
struct BlockRaces;
struct TraceCollector;
struct BlockTrace;
struct TwinTable;

struct Launch {
  const KernelDesc *kernel = nullptr;
  const ModuleDesc *module = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamicShared = 0;
  void **args = nullptr;
  uint64_t workspace = 0; ///< address of what the blocks of a cooperative launch meet at
  uint64_t orderSeed = 0;
  std::vector<uint32_t> onlyBlocks; ///< linear ids; empty: all
  TraceCollector *trace = nullptr;  ///< ModeTrace
  /// When no block begins any more, but for the first one.
  std::chrono::steady_clock::time_point beginBy = std::chrono::steady_clock::time_point::max();

  // Filled by runLaunch.
  uint32_t id = 0;
  uint32_t threads = 0;
  uint64_t blocks = 0; ///< to run
  std::vector<uint32_t> order;
  std::vector<uint32_t> warpOrder; ///< order in which warps start
  std::shared_ptr<const RangeTable> memory;
  LaunchRaces *races = nullptr; ///< ModeVerify
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> begun{0}; ///< the first so many blocks began
  std::atomic<bool> stop{false};

  bool mode(ModuleMode bit) const { return module->mode & bit; }
  /// Which block a worker begins now, in their order; `blocks` or more: none is left.
  uint64_t nextBlock();
  uint64_t blockAt(uint64_t i) const { return order.empty() ? i : order[i]; }
  std::array<uint32_t, 3> coordinates(uint64_t linearBlock) const;
};

struct Warp {
  uint32_t first = 0;    ///< linear thread of lane 0
  uint32_t present = 0;  ///< lanes that exist
  uint32_t exited = 0;   ///< lanes that have finished
  uint32_t waiting = 0;  ///< lanes in a warp operation
  uint32_t asking = 0;   ///< lanes in activemask
  uint32_t runnable = 0; ///< lanes that run or could
};

struct Barrier {
  uint32_t site = 0, population = 0;
  std::vector<uint16_t> waiters;
};

enum class Outcome : uint8_t { Running, Finished, Stalled, SetAside, Stopped };

struct Block {
  Launch *launch = nullptr;
  uint32_t preparedFor = 0; ///< launch id
  uint64_t linear = 0;
  uint32_t run = 0; ///< unique number of this run, for shadow of shared memory
  std::array<uint32_t, 3> ctaid{};
  std::unique_ptr<Fiber[]> fibers;
  unsigned capacity = 0;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  uint32_t live = 0;
  const Fiber *lateExit = nullptr;         ///< a thread that passed a barrier and has finished since
  uint32_t quietYields = 0;                ///< yields since anything else happened
  uint32_t chances = 0, timesSetAside = 0; ///< of interleave()
  Outcome outcome = Outcome::Running;

  // Fibers that can run, oldest first.
  std::vector<uint16_t> ring;
  uint32_t ringHead = 0, ringCount = 0;

  // Hand-over between contexts.
  Fiber *current = nullptr, *previous = nullptr;
  bool fromScheduler = false;
  int pendingStack = -1; ///< free once nobody runs on it any more
  boost::context::detail::fcontext_t scheduler = nullptr;

  StackPool stacks;
  char *shared = nullptr;
  uint64_t sharedCapacity = 0, sharedBytes = 0;
  std::vector<SiteCache> siteCache;
  std::vector<uint32_t> counts;
  BlockRaces *races = nullptr;
  BlockTrace *trace = nullptr;
  TwinTable *twins = nullptr; ///< ModeShadow: shared and local memory

  ~Block();
  /// Sets up what is equal for all blocks of a launch.
  bool prepare(Launch &launch);
  void start(uint64_t linearBlock);
  /// Runs until the block has finished, is only polling, is set aside, or the launch stops.
  Outcome resume();
  /// The loop over all blocks for kernels that never wait; takes blocks itself.
  void runDirect();

  void push(Fiber &f) { ring[(ringHead + ringCount++) & (ring.size() - 1)] = uint16_t(f.linear); }
  Fiber *pop() {
    if (!ringCount)
      return nullptr;
    Fiber &f = fibers[ring[ringHead]];
    ringHead = (ringHead + 1) & (uint32_t(ring.size()) - 1);
    --ringCount;
    return &f;
  }
  Warp &warpOf(Fiber &f) { return warps[f.warp]; }
  bool isShared(const void *p) const { return p >= shared && p < shared + sharedBytes; }
  /// Makes a waiting fiber ready.
  void wake(Fiber &f);
  /// `self` no longer runs; its lane stops counting as runnable.
  void block(Fiber &self, FiberState state);
  /// Runs others until `self` is ready again.
  void switchAway(Fiber &self);
  void yield(Fiber &self);
  /// In a permuted order other blocks may run now: before what blocks agree by, an atomic access or a fence.
  void interleave(Fiber &self);
  void threadExited(Fiber &self);
  void arrive(boost::context::detail::transfer_t t);
  void jumpTo(Fiber *self, Fiber &next);
  [[noreturn]] void leave(Outcome why);
  /// Back to the scheduler, until it resumes the block.
  void pause(Fiber &self, Outcome why);
  void releaseBarrier(unsigned id);
  void resolveActiveMasks(Warp &w);
  bool completeWarpOp(Warp &w, uint32_t mask);
  [[noreturn]] void reportDeadlock();
};

/// Runs the launch to its end on up to `workers` threads. False when it could not run or a fault stopped it.
bool runLaunch(Launch &launch, unsigned workers, std::string &error);

/// Ends the launch from inside a kernel after a fault.
[[noreturn]] void abandonLaunch(Fiber &fiber);

/// The fiber that the calling host thread runs now, or null outside kernels. For signal handlers.
Fiber *currentFiber();

/// ModeVerify: a thread that took part in an earlier barrier finished without reaching the one that `self` waits at.
void reportMissingArrival(Fiber &self, const Fiber &gone);

/// From inside a kernel.
void waitForBarrier(Fiber &self, uint32_t id, uint32_t predicate, uint32_t site);

} // namespace optiml::emu

#endif
