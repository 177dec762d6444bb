//===- RangeProfiler.h - hardware counters of kernels, in process -*- C++ -*-===//
//
// The target half of reading counters with CUPTI's range profiler: every kernel that is launched while profile() runs
// is a range of its own, and CUPTI runs it again and again, its memory restored, until all passes are read. Kernels are
// slow meanwhile; time them when no RangeProfiler exists. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_RANGEPROFILER_H
#define OPTIML_GPU_RANGEPROFILER_H

#include "optiml/Gpu/MetricPlan.h"
#include <cuda.h>
#include <functional>

struct CUpti_RangeProfiler_Object;

namespace optiml::gpu {

struct Cupti;

/// CUPTI's name of the chip of a device ("GH100"): what a MetricPlan is made for. The driver must be initialized.
/// Empty, and `why` says so, when CUPTI cannot profile it.
std::string chipName(unsigned device, std::string &why);

class RangeProfiler {
public:
  /// How many kernels one call of profile() may launch.
  static constexpr size_t mostKernels = 32;

  /// Enables profiling of the context, which takes some 100 ms. The plan must live as long. Null, and `why` says so,
  /// when counters cannot be read.
  static std::unique_ptr<RangeProfiler> create(CUcontext context, const MetricPlan &plan, std::string &why);
  /// Disables it again: what runs later is not disturbed.
  ~RangeProfiler();
  RangeProfiler(const RangeProfiler &) = delete;
  RangeProfiler &operator=(const RangeProfiler &) = delete;

  /// Reads the counters of the kernels that `launchAndSynchronize` launches, combined. It may be called more than once,
  /// and answers false when a launch failed.
  bool profile(const std::function<bool()> &launchAndSynchronize, RawCounters &raw, std::string &why);

private:
  RangeProfiler(const Cupti &cupti, CUcontext context, const MetricPlan &plan)
      : cupti(cupti), context(context), plan(plan) {}
  bool enable(std::string &why);
  void disable();
  bool configure(std::string &why);
  bool collect(const std::function<bool()> &launchAndSynchronize, bool &launched, std::string &why);
  bool read(RawCounters &raw, std::string &why) const;

  const Cupti &cupti;
  CUcontext context;
  const MetricPlan &plan;
  CUpti_RangeProfiler_Object *profiler = nullptr;
  std::vector<uint8_t> counterData;
  bool configured = false; ///< and not started since
  bool used = false;       ///< since it was enabled
};

} // namespace optiml::gpu

#endif
