//===- Cupti.h - CUPTI, when there is one -----------------------*- C++ -*-===//
//
// libcupti, opened when first asked for: from $OPTIML_CUPTI (a file), from the loader's paths, and from where the CUDA
// Toolkit keeps it ($CUDA_PATH or /usr/local/cuda: extras/CUPTI/lib64, lib64, targets/x86_64-linux/lib). Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_CUPTI_H
#define OPTIML_GPU_CUPTI_H

#include "optiml/Gpu/DynamicLibrary.h"
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <string>

#define OPTIML_CUPTI_FUNCTIONS(X)                                                                                      \
  X(cuptiGetResultString)                                                                                              \
  X(cuptiSubscribe)                                                                                                    \
  X(cuptiUnsubscribe)                                                                                                  \
  X(cuptiEnableDomain)                                                                                                 \
  X(cuptiEnableCallback)                                                                                               \
  X(cuptiActivityEnable)                                                                                               \
  X(cuptiActivityRegisterCallbacks)                                                                                    \
  X(cuptiActivityGetNextRecord)                                                                                        \
  X(cuptiActivityGetNumDroppedRecords)                                                                                 \
  X(cuptiActivityFlushAll)                                                                                             \
  X(cuptiProfilerInitialize)                                                                                           \
  X(cuptiProfilerDeInitialize)                                                                                         \
  X(cuptiDeviceGetChipName)                                                                                            \
  X(cuptiProfilerHostInitialize)                                                                                       \
  X(cuptiProfilerHostDeinitialize)                                                                                     \
  X(cuptiProfilerHostGetBaseMetrics)                                                                                   \
  X(cuptiProfilerHostGetSupportedChips)                                                                                \
  X(cuptiProfilerHostGetMetricProperties)                                                                              \
  X(cuptiProfilerHostConfigAddMetrics)                                                                                 \
  X(cuptiProfilerHostGetConfigImageSize)                                                                               \
  X(cuptiProfilerHostGetConfigImage)                                                                                   \
  X(cuptiProfilerHostGetNumOfPasses)                                                                                   \
  X(cuptiProfilerHostEvaluateToGpuValues)                                                                              \
  X(cuptiRangeProfilerEnable)                                                                                          \
  X(cuptiRangeProfilerDisable)                                                                                         \
  X(cuptiRangeProfilerStart)                                                                                           \
  X(cuptiRangeProfilerStop)                                                                                            \
  X(cuptiRangeProfilerSetConfig)                                                                                       \
  X(cuptiRangeProfilerDecodeData)                                                                                      \
  X(cuptiRangeProfilerGetCounterDataSize)                                                                              \
  X(cuptiRangeProfilerCounterDataImageInitialize)                                                                      \
  X(cuptiRangeProfilerGetCounterDataInfo)

namespace optiml::gpu {

struct Cupti {
  OPTIML_CUPTI_FUNCTIONS(OPTIML_FUNCTION_MEMBER)

  /// CUPTI's functions, or null, and `why` says what is missing.
  static const Cupti *get(std::string &why);
  std::string message(CUptiResult result) const;
};

} // namespace optiml::gpu

#endif
