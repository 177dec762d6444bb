//===- CuptiParams.h - calling CUPTI ----------------------------*- C++ -*-===//
//
// CUPTI's profiler functions take a struct each that must know its own size; and the words for what they answer.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_CUPTIPARAMS_H
#define OPTIML_LIB_GPU_CUPTIPARAMS_H

#include "optiml/Gpu/Counters.h"
#include "optiml/Gpu/Cupti.h"

#define OPTIML_CUPTI_PARAMS(TYPE) optiml::gpu::cuptiParams<TYPE>(TYPE##_STRUCT_SIZE)

namespace optiml::gpu {

template <typename T> T cuptiParams(size_t size) {
  T params{};
  params.structSize = size;
  return params;
}

/// Why a call failed; where the user can do something about it, that.
inline std::string cuptiFailure(const Cupti &cupti, CUptiResult result, const char *call) {
  switch (result) {
  case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: return counterPermissionHint();
  case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
    return "the host of this virtual GPU does not let its guests read hardware counters: profiling must be enabled "
           "there";
  case CUPTI_ERROR_HARDWARE_BUSY:
    return "another profiler uses the GPU's hardware counters (Nsight Compute, DCGM, a second OptiML?)";
  default: return std::string(call) + ": " + cupti.message(result);
  }
}

inline bool succeeded(const Cupti &cupti, CUptiResult result, const char *call, std::string &why) {
  if (result != CUPTI_SUCCESS)
    why = cuptiFailure(cupti, result, call);
  return result == CUPTI_SUCCESS;
}

} // namespace optiml::gpu

/// Calls a function of `cupti` with its params; false, and `why` says why, when it fails.
#define OPTIML_CUPTI_CALL(FUNCTION, PARAMS) optiml::gpu::succeeded(cupti, cupti.FUNCTION(&(PARAMS)), #FUNCTION, why)

#endif
