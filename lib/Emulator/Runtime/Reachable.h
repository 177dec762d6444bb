//===- Reachable.h - the memory a launch may touch --------------*- C++ -*-===//
#ifndef OPTIML_RUNTIME_REACHABLE_H
#define OPTIML_RUNTIME_REACHABLE_H

#include "Scheduler.h"

namespace optiml::emu {

/// What pointer arguments point into, what pointers in struct arguments and in those buffers reach (found by scanning
/// for values that look like pointers), and the module's variables; by address.
std::vector<Allocation *> reachableBuffers(const Launch &launch);

/// The allocation a pointer argument belongs to (one past its end counts), or null.
Allocation *pointedTo(const Launch &launch, uint32_t parameter);

} // namespace optiml::emu

#endif
