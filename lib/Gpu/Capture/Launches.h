//===- Launches.h - recording launches on the GPU ---------------*- C++ -*-===//
//
// Around a launch that is to be kept: wait for the GPU, copy every buffer the kernel may reach, let it run, wait, copy
// again. The program sees none of it but the time. Whatever cannot be captured faithfully is left out, with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_CAPTURE_LAUNCHES_H
#define OPTIML_LIB_GPU_CAPTURE_LAUNCHES_H

#include "Allocations.h"
#include "Kernels.h"
#include "optiml/Workload/Recorder.h"
#include <atomic>
#include <memory>
#include <mutex>

namespace optiml::gpu {

struct LaunchCall {
  CUfunction function = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t sharedBytes = 0;
  CUstream stream = nullptr;
  void **parameters = nullptr, **extra = nullptr; ///< as of cuLaunchKernel
  bool clusters = false;                          ///< with a cluster size of its own
};

class Launches {
public:
  explicit Launches(const Driver &driver) : driver(driver), kernels(driver, modules) {}
  /// Only one process may capture into a folder. False, with a message on stderr, when it cannot be.
  bool open(const std::string &directory, const CaptureLimits &limits, const char *kernelExpression);

  /// Before and after every launch. True when this thread now holds the launch that is being recorded; after() is then
  /// to be called by it.
  bool before(const LaunchCall &call, const char *symbolName);
  void after(CUresult result);
  void graphLaunched();
  /// A stream begins and ends being captured into a graph. Meanwhile nothing may be waited for.
  void streamCaptureBegins(CUstream stream);
  void streamCaptureEnds(CUstream stream);
  /// Writes workload.json a last time.
  void finish();
  bool hasEnded() const { return ended; }

  /// Writes workload.json a last time. No launch begins until release(), and none is recorded any more. False where
  /// that cannot be now.
  bool hold();
  /// How many kernels were launched that are to be recorded.
  size_t kernelsSeen();
  void release();
  /// A launch comes from there.
  void seen(CUcontext context);
  /// Of the launches so far; null: there are none, or they come from several.
  CUcontext context() const { return usesSeveralGpus() ? nullptr : current.load(); }
  bool usesSeveralGpus() const { return several; }

  Allocations allocations;
  LoadedModules modules;

private:
  bool capturing(CUstream stream);
  bool argumentsOf(const LaunchCall &call, const KernelInfo &info, LaunchImage &image);
  bool driverRange(uint64_t address, MemoryRange &into) const;
  bool record(KernelInfo &info, std::string &why);
  std::string storeBefore(const KernelInfo &info);
  std::string storeAfter();
  bool copyOut(uint64_t address, uint64_t bytes, char *into) const;
  bool stage(const MemoryRange &window);

  const Driver &driver;
  std::timed_mutex mutex; ///< from before() to after() when a launch is being recorded
  Kernels kernels;
  Recorder recorder;
  std::vector<CUstream> capturedStreams;
  std::atomic<bool> graphsNoted = false;
  std::atomic<bool> ended = false, several = false;
  std::atomic<CUcontext> current = nullptr;
  // The launch being recorded.
  std::vector<MemoryRange> foundByDriver, windows;
  std::unique_ptr<char[]> staging; ///< one window's content
  uint64_t stagingBytes = 0;
};

} // namespace optiml::gpu

#endif
