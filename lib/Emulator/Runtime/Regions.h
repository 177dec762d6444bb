//===- Regions.h - what a device address may point into ---------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_REGIONS_H
#define OPTIML_LIB_EMULATOR_RUNTIME_REGIONS_H

#include "Scheduler.h"

namespace optiml::emu {

enum class RegionKind : uint8_t { Global, Constant, Shared, Local, ReadOnly };

struct Region {
  RegionKind kind = RegionKind::Global;
  uint64_t lo = 0, bytes = 0;
  Allocation *allocation = nullptr; ///< Global, Constant
};

/// The region that contains `address` as seen by a thread of `block`; false when there is none.
bool locate(const Block &block, uint64_t address, Region &region);

/// "4 bytes past the end of the 4096-byte allocation from cudaMalloc #3": where a bad access of `bytes` bytes is.
std::string describeAddress(const Block &block, uint64_t address, uint64_t bytes);

inline bool isStore(AccessKind k) { return k == AccessStore || k == AccessVolatileStore; }
inline bool isAtomic(AccessKind k) { return k == AccessAtomic || k == AccessAtomicBlock; }
inline bool isLoad(AccessKind k) {
  return k == AccessLoad || k == AccessVolatileLoad || k == AccessReadOnlyLoad || k == AccessFirstLoad;
}
/// "load", "store", "atomic operation"
const char *accessName(AccessKind kind);

/// "out-of-bounds store of 4 bytes"
std::string accessHeadline(const char *what, AccessKind kind, uint64_t bytes);

/// Checks bounds and alignment (1: any) and raises a fault, or returns the region.
Region checkedRegion(Fiber &fiber, uint64_t address, uint64_t bytes, AccessKind kind, uint32_t site,
                     uint32_t alignment);

} // namespace optiml::emu

#endif
