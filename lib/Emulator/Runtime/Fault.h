//===- Fault.h - what went wrong in a kernel, in the user's terms *- C++ -*-===//
//
// In a program a fault is printed and stops it with faultExitCode. In a replay it is collected and ends the launch.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_FAULT_H
#define OPTIML_LIB_EMULATOR_RUNTIME_FAULT_H

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace optiml::emu {

struct Fiber;

struct Fault {
  std::string kind;     ///< as ReplayFault::kind, and "benign-race"
  std::string headline; ///< "out-of-bounds store of 4 bytes to global memory"
  std::string kernel;   ///< symbol
  std::string kernelName, function, file;
  uint32_t line = 0, column = 0;
  bool hasThread = true;
  uint32_t thread[3] = {0, 0, 0}, block[3] = {0, 0, 0};
  std::string detail; ///< where the address is, who the other thread is
  std::string oneLine() const;
  std::string paragraph() const;
};

/// A fault at `site` by the thread that runs `fiber`, without headline and detail.
Fault faultAt(const Fiber &fiber, const char *kind, uint32_t site);

/// Ends the launch (replay) or the program. Does not return to the kernel.
[[noreturn]] void raise(Fiber &fiber, const Fault &fault);
/// Reports a fault that the launch survives; races stop a program unless told otherwise.
void note(Fiber &fiber, const Fault &fault);

/// In a verification (Settings::stopAtRaces is off): the host changes a state of the device that outlives its work, and
/// may make other work look slower or faster.
void noteDeviceState(const char *what);

/// Where a replay's faults go.
struct FaultCollector {
  std::mutex mutex;
  std::vector<Fault> faults;
  std::set<std::string> seen;
  void add(const Fault &fault);
};
/// Null in programs.
extern FaultCollector *faultCollector;

/// Set by a replay: writes its result, with the crash among the faults, and ends the process.
extern void (*replayCrashed)(const Fault &fault);

/// Prints the fault, writes it to Settings::faultFile, finishes a capture, flushes stdio, and ends the process.
[[noreturn]] void stopProgram(const Fault &fault);

/// "(1, 2, 3)"
std::string triple(const uint32_t v[3]);

/// From now on a crash inside a kernel is reported as a fault. A crash elsewhere stays what it is. Leaves a handler
/// that the program installed alone.
void installCrashHandler();
/// Gives the calling thread a stack for signal handlers, so that overflowing a device thread's stack can be reported.
void useSignalStack();

} // namespace optiml::emu

#endif
