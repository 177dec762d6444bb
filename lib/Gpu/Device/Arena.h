//===- Arena.h - memory where the captured program had it -------*- C++ -*-===//
//
// Captured buffers come back at their old virtual addresses, so that pointers inside structs and buffers stay valid:
// the address ranges of all of a workload's buffers are reserved through the driver's virtual-memory calls. An address
// is only a hint to the driver; where it was refused, pointers into the range are rewritten: every aligned word of the
// captured data that is an address of a captured buffer (Arenas::patch). No double or pair of floats of ordinary size
// looks like one.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_DEVICE_ARENA_H
#define OPTIML_LIB_GPU_DEVICE_ARENA_H

#include "Device.h"
#include <vector>

namespace optiml::gpu {

/// [begin, begin + bytes) of the captured program's address space.
struct AddressRange {
  uint64_t begin = 0, bytes = 0;
  uint64_t end() const { return begin + bytes; }
};

/// Rounds ranges outwards to multiples of `granularity` and joins those that touch; sorted.
std::vector<AddressRange> joinRanges(std::vector<AddressRange> ranges, uint64_t granularity);

/// What of `arena` is not covered by `used` (sorted or not), at most `reach` bytes beside each used range.
std::vector<AddressRange> gapsOf(const AddressRange &arena, std::vector<AddressRange> used, uint64_t reach);

class Arenas {
public:
  /// Reserves and maps memory for the ranges. False, and Device::error, when there is no room.
  bool map(Device &device, std::vector<AddressRange> ranges);
  /// Where a captured address is now.
  CUdeviceptr translate(uint64_t address) const;
  /// The mapped range that holds a captured address; null: none.
  const AddressRange *find(uint64_t address) const;
  const std::vector<AddressRange> &ranges() const { return mapped; }
  unsigned relocated = 0; ///< ranges that the driver placed elsewhere
  /// Rewrites pointers into relocated ranges; how many there were.
  size_t patch(char *data, uint64_t bytes) const;

private:
  std::vector<AddressRange> mapped, wanted; ///< wanted: the buffers themselves, joined, sorted
  std::vector<CUdeviceptr> places;          ///< of each
};

} // namespace optiml::gpu

#endif
