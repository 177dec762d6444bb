//===- Capture.h - recording a program's launches as a workload -*- C++ -*-===//
//
// With OPTIML_CAPTURE set, launches are classed by kernel, geometry, sizes of scalars and buffers; of each class the
// first is kept and, as the others come, those whose number is a power of two take the remaining places, so that the
// kept ones spread over the run whatever its length.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_RUNTIME_CAPTURE_H
#define OPTIML_RUNTIME_CAPTURE_H

#include "Scheduler.h"

namespace optiml::emu {

/// Around every launch of the program.
void captureBefore(const Launch &launch);
void captureAfter(const Launch &launch);
/// Writes workload.json with the final weights. Also called when the program exits.
void finishCapture();

} // namespace optiml::emu

#endif
