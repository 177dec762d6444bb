//===- LoopTrial.h - replacing loops of launches, tried out -----*- C++ -*-===//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_LOOPTRIAL_H
#define OPTIML_LIB_DRIVER_LOOPTRIAL_H

#include "Backend.h"
#include "optiml/Driver/Emit.h"

namespace optiml {

struct LoopTrial {
  std::vector<LoopRewrite> rewrites; ///< empty: all loops stay
  ProgramTimes times;                ///< of the program without and with them
  std::string verified;              ///< what was compared, for people
  std::vector<std::string> notes;    ///< why loops stay
};

/// The loops of the kernels that are searched.
FoundLoops findLoops(const SearchTask &task, const Program &device, const Program &host);

/// `host` may be null when nothing was found. What the search found in `variant` (no rewrites: nothing) stays in the program beside the loops' replacements; it is
/// `speedup` times as fast as the original.
LoopTrial tryLoops(const SearchTask &task, Backend &backend, const Program *host, FoundLoops found, const Variant &variant,
                   double speedup);

} // namespace optiml

#endif
