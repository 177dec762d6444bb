//===- Processors.h - processors that this process may use ------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_PROCESSORS_H
#define OPTIML_SUPPORT_PROCESSORS_H

#include <algorithm>
#include <sched.h>
#include <thread>

namespace optiml {

/// How many processors this process may run on, at least 1. A mask or a cpuset counts, which
/// std::thread::hardware_concurrency() does not see.
inline unsigned availableProcessors() {
  cpu_set_t mask;
  const int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 0;
  return std::max(1u, allowed > 0 ? unsigned(allowed) : std::thread::hardware_concurrency());
}

} // namespace optiml

#endif
