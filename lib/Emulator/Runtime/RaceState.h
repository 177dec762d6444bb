//===- RaceState.h - the clocks and cells of the race checker ---*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_RACESTATE_H
#define OPTIML_LIB_EMULATOR_RUNTIME_RACESTATE_H

#include "Fault.h"
#include "Races.h"
#include "Regions.h"
#include <array>
#include <unordered_map>

namespace optiml::emu {

constexpr uint32_t noSite = ~0u;

/// Who made an access, and when by each of the clocks.
struct Stamp {
  uint32_t block = 0;
  uint32_t thread : 10, epoch : 22;
  uint32_t warpClock = 0;    ///< of its lane
  uint32_t releaseClock = 0; ///< of its block
  uint32_t strong : 1, blockScope : 1, site : 30;
  Stamp() : thread(0), epoch(0), strong(0), blockScope(0), site(noSite >> 2) {}
  bool valid() const { return site != noSite >> 2; }
  bool sameThread(const Stamp &o) const { return block == o.block && thread == o.thread; }
  /// The same by all clocks: an access of that kind by this thread adds nothing.
  bool sameMoment(const Stamp &o) const {
    return valid() && sameThread(o) && epoch == o.epoch && warpClock == o.warpClock && releaseClock == o.releaseClock &&
           strong == o.strong && blockScope == o.blockScope;
  }
};

struct RaceCell {
  uint32_t run; ///< launch (global) or block run (shared) that the stamps belong to
  Stamp write, read[2];
};
static_assert(sizeof(RaceCell) == 64);

/// "What was published at `object` up to record `count`."
struct Acquired {
  struct SyncObject *object;
  uint32_t count;
};

/// A thread published its past by a fence and then an atomic or volatile store.
struct Release {
  uint32_t block, thread, epoch, fenceClock, fenceEpoch;
  std::vector<Acquired> known; ///< what it had itself acquired
};

struct SyncObject {
  std::vector<Release> log;
  std::unordered_map<uint32_t, std::vector<uint32_t>> byBlock; ///< indices into log
};

struct ThreadRaces {
  bool fenced = false;
  uint32_t fenceClock = 0, fenceEpoch = 0;
  std::vector<Acquired> acquired;
  // A store that races with another store, until it is known whether it changed the bytes.
  bool pending = false;
  uint64_t pendingAddress = 0;
  std::array<unsigned char, 16> pendingBytes{};
  uint32_t pendingSize = 0;
  Fault pendingFault;
};

struct BlockRaces {
  uint32_t epoch = 0, releaseClock = 1;
  std::vector<ThreadRaces> threads;
  std::vector<Acquired> acquired;                               ///< known to the whole block
  std::vector<std::array<std::array<uint32_t, 32>, 32>> clocks; ///< per warp: [lane][of lane]
  RaceCell *shared = nullptr;
  uint64_t sharedCells = 0;
  /// The last region each site touched.
  std::vector<Region> regions;
};

struct LaunchRaces {
  uint32_t granuleShift = 2;                        ///< log2 of the granule in bytes
  bool writesAnything = false;                      ///< else it writes only to these, and to shared memory:
  std::vector<const Allocation *> written;          ///< few
  std::unordered_map<uint64_t, SyncObject> objects; ///< by address
  /// Last fence of each thread of finished and running blocks that fenced at all: [block][thread], 0 none.
  std::unordered_map<uint32_t, std::vector<uint32_t>> fences;
};

/// Whether what `fiber` or its block has acquired orders the access before what it does now.
bool orderedByRelease(const Fiber &fiber, const Stamp &before);

/// Whether the access `before` happened before what `fiber` does now. Most accesses are ordered by the program, by a
/// barrier or within a warp, or by nothing.
inline bool orderedBefore(const Fiber &fiber, const Stamp &before) {
  const BlockRaces &races = *fiber.block->races;
  if (before.block == fiber.block->linear) {
    if (before.thread == fiber.linear || before.epoch < races.epoch)
      return true;
    if (!races.clocks.empty() && before.thread / 32 == fiber.linear / 32 &&
        races.clocks[fiber.warp][fiber.context.lane][before.thread % 32] >= before.warpClock)
      return true;
  }
  return !(fiber.races->acquired.empty() && races.acquired.empty()) && orderedByRelease(fiber, before);
}

void publish(Fiber &fiber, uint64_t address);
void takeUp(Fiber &fiber, uint64_t address);

} // namespace optiml::emu

#endif
