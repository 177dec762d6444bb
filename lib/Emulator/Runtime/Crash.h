//===- Crash.h - signals in device code -------------------------*- C++ -*-===//
#ifndef OPTIML_RUNTIME_CRASH_H
#define OPTIML_RUNTIME_CRASH_H

namespace optiml::emu {

/// From now on a crash inside a kernel is reported as a fault. A crash elsewhere stays what it is. Leaves a handler
/// that the program installed alone.
void installCrashHandler();
/// Gives the calling thread a stack for signal handlers, so that overflowing a device thread's stack can be reported.
void useSignalStack();

} // namespace optiml::emu

#endif
