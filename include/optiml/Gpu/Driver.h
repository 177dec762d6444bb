//===- Driver.h - the CUDA driver, when there is one ------------*- C++ -*-===//
//
// libcuda.so.1, opened when first asked for. Needs no LLVM: the library that is injected into programs uses it too.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_DRIVER_H
#define OPTIML_GPU_DRIVER_H

#include "optiml/Gpu/DynamicLibrary.h"
#include <cuda.h>
#include <string>

#define OPTIML_CUDA_FUNCTIONS(X)                                                                                       \
  X(cuInit)                                                                                                            \
  X(cuDriverGetVersion)                                                                                                \
  X(cuGetErrorString)                                                                                                  \
  X(cuGetErrorName)                                                                                                    \
  X(cuDeviceGet)                                                                                                       \
  X(cuDeviceGetCount)                                                                                                  \
  X(cuDeviceGetName)                                                                                                   \
  X(cuDeviceGetAttribute)                                                                                              \
  X(cuDeviceGetUuid)                                                                                                   \
  X(cuDeviceTotalMem)                                                                                                  \
  X(cuDevicePrimaryCtxRetain)                                                                                          \
  X(cuCtxSetCurrent)                                                                                                   \
  X(cuCtxGetCurrent)                                                                                                   \
  X(cuCtxGetDevice)                                                                                                    \
  X(cuCtxSynchronize)                                                                                                  \
  X(cuMemGetInfo)                                                                                                      \
  X(cuMemAlloc)                                                                                                        \
  X(cuMemFree)                                                                                                         \
  X(cuMemAllocHost)                                                                                                    \
  X(cuMemFreeHost)                                                                                                     \
  X(cuMemcpy)                                                                                                          \
  X(cuMemcpyDtoH)                                                                                                      \
  X(cuMemcpyHtoD)                                                                                                      \
  X(cuMemcpyDtoD)                                                                                                      \
  X(cuMemcpyDtoDAsync)                                                                                                 \
  X(cuMemcpyDtoHAsync)                                                                                                 \
  X(cuMemcpyHtoDAsync)                                                                                                 \
  X(cuMemsetD8)                                                                                                        \
  X(cuMemsetD8Async)                                                                                                   \
  X(cuMemsetD32Async)                                                                                                  \
  X(cuMemAddressReserve)                                                                                               \
  X(cuMemAddressFree)                                                                                                  \
  X(cuMemCreate)                                                                                                       \
  X(cuMemRelease)                                                                                                      \
  X(cuMemMap)                                                                                                          \
  X(cuMemUnmap)                                                                                                        \
  X(cuMemSetAccess)                                                                                                    \
  X(cuMemGetAllocationGranularity)                                                                                     \
  X(cuPointerGetAttribute)                                                                                             \
  X(cuModuleLoadData)                                                                                                  \
  X(cuModuleLoad)                                                                                                      \
  X(cuModuleUnload)                                                                                                    \
  X(cuModuleGetFunction)                                                                                               \
  X(cuModuleGetGlobal)                                                                                                 \
  X(cuLibraryGetGlobal)                                                                                                \
  X(cuLibraryGetManaged)                                                                                               \
  X(cuKernelGetLibrary)                                                                                                \
  X(cuKernelGetName)                                                                                                   \
  X(cuKernelGetParamInfo)                                                                                              \
  X(cuKernelGetFunction)                                                                                               \
  X(cuFuncLoad)                                                                                                        \
  X(cuFuncGetName)                                                                                                     \
  X(cuFuncGetModule)                                                                                                   \
  X(cuFuncGetParamInfo)                                                                                                \
  X(cuFuncGetAttribute)                                                                                                \
  X(cuFuncSetAttribute)                                                                                                \
  X(cuLaunchKernel)                                                                                                    \
  X(cuLaunchKernelEx)                                                                                                  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                       \
  X(cuStreamCreate)                                                                                                    \
  X(cuStreamSynchronize)                                                                                               \
  X(cuStreamQuery)                                                                                                     \
  X(cuStreamIsCapturing)                                                                                               \
  X(cuEventCreate)                                                                                                     \
  X(cuEventDestroy)                                                                                                    \
  X(cuEventRecord)                                                                                                     \
  X(cuEventQuery)                                                                                                      \
  X(cuEventSynchronize)                                                                                                \
  X(cuEventElapsedTime)

namespace optiml::gpu {

struct Driver {
  OPTIML_CUDA_FUNCTIONS(OPTIML_FUNCTION_MEMBER)

  /// The driver's functions, or null, and `why` says what is missing. Does not initialize the driver.
  static const Driver *get(std::string &why);
  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string message(CUresult result) const;
};

} // namespace optiml::gpu

#endif
