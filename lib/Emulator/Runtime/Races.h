//===- Races.h - data races and uninitialized shared memory -----*- C++ -*-===//
//
// ModeVerify. Every granule of memory (the kernel's smallest access) has a cell with its last writer and two readers.
// A new access conflicts with one of another thread (one of them writing, not both atomic) unless it is ordered after:
//  - within a block by a barrier in between (the epoch grew);
//  - within a warp by __syncwarp, through vector clocks of the lanes (shuffles order nothing);
//  - anywhere by release and acquire: a fence followed by an atomic or volatile store publishes what its thread had
//    done, and what its block had done before its last barrier; an atomic or volatile load of the same address takes
//    that up, for its thread, and for its block after the next barrier.
// Two stores of equal values are a race too, but of kind "benign-race". Memory that a launch does not write has no
// cells.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_RACES_H
#define OPTIML_LIB_EMULATOR_RUNTIME_RACES_H

#include "Scheduler.h"

namespace optiml::emu {

/// Checks bounds, alignment, initialization and races of one access; may not return. A plain load from memory that
/// nothing of the launch writes is known at its site from then on, and need not come here again.
void raceAccess(Fiber &fiber, uint64_t address, uint64_t bytes, AccessKind kind, uint32_t site, uint32_t alignment);

LaunchRaces *newLaunchRaces(const Launch &launch);
void deleteLaunchRaces(LaunchRaces *races);
void deleteBlockRaces(BlockRaces *races);
/// Allocates the block's state when the launch is in ModeVerify.
void prepareRaces(Block &block);
void startRaces(Block &block);
/// All live threads have reached a barrier.
void barrierRaces(Block &block);
/// `lanes` have met in __syncwarp.
void warpSyncRaces(Block &block, Warp &warp, uint32_t lanes);
void threadExitedRaces(Fiber &fiber);
void fenceRaces(Fiber &fiber);

void settleStore(Fiber &fiber);
/// Decides whether the thread's last racing store changed anything. Called before the thread does anything else.
inline void settleRaces(Fiber &fiber) {
  if (fiber.races)
    settleStore(fiber);
}

} // namespace optiml::emu

#endif
