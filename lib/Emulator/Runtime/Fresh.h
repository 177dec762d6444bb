//===- Fresh.h - kernels on other inputs ------------------------*- C++ -*-===//
#ifndef OPTIML_RUNTIME_FRESH_H
#define OPTIML_RUNTIME_FRESH_H

#include "Scheduler.h"

namespace optiml::emu {

/// With OPTIML_EMU_FRESH set, before the first launch of each kernel and geometry: runs it once on other contents of
/// its buffers, logs what comes out (CopyLog.h), and puts everything back. The program itself notices nothing. The
/// contents depend on the kernel, the parameter and the seed, so that two versions of a program see the same. With
/// OPTIML_EMU_FRESH_HOST set, it is the program's own input that changes.
void freshBefore(const Launch &launch, unsigned workers);

} // namespace optiml::emu

#endif
