//===- Device.h - one GPU and its context -----------------------*- C++ -*-===//
//
// A thin layer over the driver: errors become one sentence (`error`), and an error after which the context cannot be
// used any more sets `lost`. Single-threaded, one stream.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_DEVICE_DEVICE_H
#define OPTIML_LIB_GPU_DEVICE_DEVICE_H

#include "Places.h"
#include "optiml/Gpu/Driver.h"
#include "optiml/Gpu/Protocol.h"
#include <memory>
#include <string>

namespace optiml::gpu {

constexpr Place nowhere = ~Place(0);

class Device {
public:
  /// The GPU with that index among those visible. Null, and `why`, when it cannot be used.
  static std::unique_ptr<Device> open(unsigned index, std::string &why);

  const Driver &cu;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  DeviceInfo info;

  std::string error; ///< of the last thing that failed
  bool lost = false; ///< the context is broken

  /// Whether a driver call succeeded; if not, `error` says what was being done.
  bool ok(CUresult result, const char *doing);
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }

  /// Lives as long as the process. 0 when there is no room.
  CUdeviceptr allocate(uint64_t bytes, const char *what);
  bool upload(CUdeviceptr to, const void *from, uint64_t bytes);
  bool download(void *to, CUdeviceptr from, uint64_t bytes);
  bool copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes);    ///< queued
  bool fill(CUdeviceptr at, unsigned char value, uint64_t bytes); ///< queued

  enum class Wait { Done, Failed, TimedOut };
  /// For everything queued. After Failed and TimedOut the context is lost.
  Wait wait(double seconds);
  /// The same for the worker's own work, which ends soon.
  bool finish();

  // The worker's own kernels, queued. `place` is one of the counters below.
  bool compareBits(CUdeviceptr actual, CUdeviceptr expected, uint64_t bytes, unsigned place);
  bool compareNumbers(Compare how, CUdeviceptr actual, CUdeviceptr expected, uint64_t bytes, double relative,
                      double typical, unsigned place);
  /// Structures of `inRecord` words. `kinds`: a WordKind (Cases.h) for each of them, on the device.
  bool compareRecords(CUdeviceptr actual, CUdeviceptr expected, uint64_t bytes, CUdeviceptr kinds, uint64_t inRecord,
                      double relative, double typical, unsigned place);
  bool checkCells(CUdeviceptr actual, CUdeviceptr expected, CUdeviceptr cells, uint64_t n, unsigned place);
  bool checkPattern(CUdeviceptr at, uint64_t bytes, unsigned char value, unsigned place);
  bool checkWritten(CUdeviceptr result, CUdeviceptr poisoned, CUdeviceptr expected, uint64_t bytes, unsigned place,
                    unsigned written);
  bool poison(CUdeviceptr at, uint64_t bytes, bool floating, int low, int high);
  bool spin(unsigned nanoseconds);
  /// Makes the L2 cache forget what it holds.
  bool flushL2();

  /// Counters on the device: all set to nowhere, or read (after finish()).
  static constexpr unsigned counters = places;
  bool resetCounters(unsigned n);
  bool setCounter(unsigned index, Place value);
  bool readCounters(Place *into, unsigned n);

private:
  explicit Device(const Driver &cu) : cu(cu) {}
  bool start(unsigned index);
  bool loadKernels();
  bool launch(CUfunction f, uint64_t items, void **arguments);
  CUdeviceptr counter(unsigned index) const { return counterMemory + index * sizeof(Place); }

  CUmodule module = nullptr;
  CUfunction bitsKernel = nullptr, floatsKernel = nullptr, doublesKernel = nullptr, halvesKernel = nullptr,
             bfloatsKernel = nullptr, recordsKernel = nullptr, cellsKernel = nullptr, patternKernel = nullptr,
             writtenKernel = nullptr, poisonKernel = nullptr, spinKernel = nullptr;
  CUdeviceptr counterMemory = 0, flushMemory = 0;
};

} // namespace optiml::gpu

#endif
