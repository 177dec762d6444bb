//===- Capture.h - the injected library's two uses --------------*- C++ -*-===//
#ifndef OPTIML_LIB_GPU_CAPTURE_CAPTURE_H
#define OPTIML_LIB_GPU_CAPTURE_CAPTURE_H

#include "optiml/Gpu/Cupti.h"
#include "optiml/Gpu/Driver.h"
#include "optiml/Workload/RuntimeSettings.h"

namespace optiml::gpu {

/// A folder, by a pattern for pathOfProcess: the program's launches become a workload there (docs/formats.md).
/// OPTIML_CAPTURE_PER_CLASS, OPTIML_CAPTURE_MAX_LAUNCHES (64), OPTIML_CAPTURE_MAX_BYTES (8G) and OPTIML_CAPTURE_SKIP
/// are as for the emulator.
constexpr const char *envCaptureDir = "OPTIML_CAPTURE_DIR";
/// A POSIX extended regular expression; kernels whose mangled or demangled name it does not match are only counted.
using optiml::emu::envCaptureKernels;
/// A file, by such a pattern: gets the GPU time of each kernel when the program exits. While launches are captured,
/// too, those that are not count for all of their kernel, and copies are not timed.
constexpr const char *envKernelTimes = "OPTIML_KERNEL_TIMES";

/// A file, by such a pattern: gets what cudaMemcpy has brought to the host, and all unified memory whenever the host
/// has waited. Each copy is its number of bytes (8 bytes, as this machine writes them) and the bytes, which are missing
/// where the program sees anything else.
constexpr const char *envCopies = "OPTIML_COPIES";

/// "FIRST,LAST,KERNELS": after FIRST seconds, if it has launched so many kernels, else after LAST, a captured program
/// stops (SIGSTOP). Its launches and times so far are written then, with "paused", its process's number, among the
/// times.
constexpr const char *envPauseAfter = "OPTIML_PAUSE_AFTER";

class Launches;
void pauseAfter(const char *when, const Driver &driver, Launches &launches);
/// False where they cannot be written.
bool writeTimesSoFar();

bool startCapture(const Driver &driver, const Cupti &cupti, const char *directory);
/// `alone`: without a capture, which has the only subscriber that CUPTI allows.
bool startKernelTimes(const Driver &driver, const Cupti &cupti, const char *file, bool alone);
/// Copies to the host are kept from now on: their callback, and what enables it.
void keepCopies(const Driver &driver, const Cupti &cupti, CUpti_SubscriberHandle subscriber);
void copyEnded(CUpti_CallbackId id, const CUpti_CallbackData &data);
bool isCopy(CUpti_CallbackDomain domain, CUpti_CallbackId id);
/// What a capture tells the times beside it: a launch is being recorded, a context is about to end.
void isRecorded(uint32_t correlation);
void beforeContextEnds();

/// Prints a CUPTI error; true when there is none.
bool succeeded(const Cupti &cupti, CUptiResult result, const char *what);

/// What the call was given.
template <typename Params> const Params &paramsOf(const CUpti_CallbackData &data) {
  return *static_cast<const Params *>(data.functionParams);
}

/// While one lives, this thread's calls to the driver are ours: callbacks must not look at them.
class Quiet {
public:
  Quiet() { ++depth(); }
  ~Quiet() { --depth(); }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;
  static bool here() { return depth() != 0; }

private:
  static int &depth() {
    static thread_local int value = 0;
    return value;
  }
};

} // namespace optiml::gpu

#endif
