//===- Twins.h - double-precision twins of floats in memory -----*- C++ -*-===//
//
// ModeShadow. A cell remembers the bits that were stored together with their twin; it is valid while memory still holds
// those bits. Global memory has a cell for every four bytes, and one for every two where numbers of 16 bits are stored;
// shared and thread-local memory a table per block.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_TWINS_H
#define OPTIML_LIB_EMULATOR_RUNTIME_TWINS_H

#include "Scheduler.h"
#include <functional>

namespace optiml::emu {

struct TwinCell {
  uint64_t bits;
  double value, magnitude;
  uint32_t bytes;     ///< of the number, 2, 4, or 8; 0: none
  uint32_t additions; ///< atomic ones since it was last stored, one after the other
};

TwinTable *newTwinTable();
void clearTwinTable(TwinTable *table);
void deleteTwinTable(TwinTable *table);

/// Calls `visit(offset, cell)` for every valid cell in [begin, begin + bytes) of the allocation.
void forEachTwin(const Allocation &allocation, uint64_t begin, uint64_t bytes,
                 const std::function<void(uint64_t, const TwinCell &)> &visit);

/// After a copy between the two: the twins go with the numbers.
void copyTwins(Allocation &to, uint64_t toOffset, const Allocation &from, uint64_t fromOffset, uint64_t bytes);

} // namespace optiml::emu

#endif
