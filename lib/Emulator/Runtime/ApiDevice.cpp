//===- ApiDevice.cpp - the one device and its properties ------------------===//
#include "Api.h"
#include "Memory.h"
#include <cstdio>
#include <cstring>
#include <cuda_profiler_api.h>

using namespace optiml::emu;

bool optiml::emu::validDevice(int device) { return device == 0; }

static thread_local size_t limits[cudaLimitMaxL2FetchGranularity + 2] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

static void fillProperties(cudaDeviceProp &p) {
  memset(&p, 0, sizeof p);
  snprintf(p.name, sizeof p.name, "NVIDIA H200 (OptiML CPU emulator)");
  p.totalGlobalMem = Memory::get().totalBytes();
  p.sharedMemPerBlock = Device::sharedPerBlock;
  p.regsPerBlock = p.regsPerMultiprocessor = Device::registersPerBlock;
  p.warpSize = 32;
  p.memPitch = 2147483647;
  p.maxThreadsPerBlock = Device::maxThreadsPerBlock;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = 9;
  p.minor = 0;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = Device::multiprocessors;
  p.canMapHostMemory = 1;
  p.surfaceAlignment = 512;
  p.concurrentKernels = 1;
  p.ECCEnabled = 1;
  p.asyncEngineCount = 3;
  p.unifiedAddressing = 1;
  p.memoryBusWidth = Device::memoryBusBits;
  p.l2CacheSize = Device::l2Bytes;
  p.maxThreadsPerMultiProcessor = Device::maxThreadsPerMultiprocessor;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = Device::sharedPerMultiprocessor;
  p.managedMemory = 1;
  p.hostNativeAtomicSupported = 0;
  p.concurrentManagedAccess = 1;
  p.computePreemptionSupported = 1;
  p.canUseHostPointerForRegisteredMem = 1;
  p.cooperativeLaunch = 1;
  p.sharedMemPerBlockOptin = Device::sharedPerBlockOptin;
  p.maxBlocksPerMultiProcessor = Device::maxBlocksPerMultiprocessor;
  p.reservedSharedMemPerBlock = Device::reservedSharedPerBlock;
  p.hostRegisterSupported = 1;
  p.memoryPoolsSupported = 1;
#if CUDART_VERSION < 13000
  p.clockRate = Device::clockKHz;
  p.memoryClockRate = Device::memoryClockKHz;
#endif
}

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  if (!count)
    return result(cudaErrorInvalidValue);
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  if (!device)
    return result(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return validDevice(device) ? cudaSuccess : result(cudaErrorInvalidDevice); }
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *) { return cudaGetDevice(device); }
cudaError_t cudaSetValidDevices(int *, int) { return cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  if (flags)
    *flags = cudaDeviceMapHost;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char *into, int length, int device) {
  if (!into || length < 13 || !validDevice(device))
    return result(cudaErrorInvalidValue);
  snprintf(into, size_t(length), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *) { return cudaGetDevice(device); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *into, int device) {
  if (!into)
    return result(cudaErrorInvalidValue);
  if (!validDevice(device))
    return result(cudaErrorInvalidDevice);
  fillProperties(*into);
  return cudaSuccess;
}
#if CUDART_VERSION < 13000
extern "C" decltype(cudaGetDeviceProperties) cudaGetDeviceProperties_v2
    __attribute__((alias("cudaGetDeviceProperties")));
#endif

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  if (!value)
    return result(cudaErrorInvalidValue);
  if (!validDevice(device))
    return result(cudaErrorInvalidDevice);
  cudaDeviceProp p;
  fillProperties(p);
  switch (attribute) {
  case cudaDevAttrMaxThreadsPerBlock:
    *value = p.maxThreadsPerBlock;
    break;
  case cudaDevAttrMaxBlockDimX:
    *value = p.maxThreadsDim[0];
    break;
  case cudaDevAttrMaxBlockDimY:
    *value = p.maxThreadsDim[1];
    break;
  case cudaDevAttrMaxBlockDimZ:
    *value = p.maxThreadsDim[2];
    break;
  case cudaDevAttrMaxGridDimX:
    *value = p.maxGridSize[0];
    break;
  case cudaDevAttrMaxGridDimY:
    *value = p.maxGridSize[1];
    break;
  case cudaDevAttrMaxGridDimZ:
    *value = p.maxGridSize[2];
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = int(p.sharedMemPerBlock);
    break;
  case cudaDevAttrTotalConstantMemory:
    *value = int(p.totalConstMem);
    break;
  case cudaDevAttrWarpSize:
    *value = p.warpSize;
    break;
  case cudaDevAttrMaxPitch:
    *value = int(p.memPitch);
    break;
  case cudaDevAttrMaxRegistersPerBlock:
    *value = p.regsPerBlock;
    break;
  case cudaDevAttrClockRate:
    *value = Device::clockKHz;
    break;
  case cudaDevAttrTextureAlignment:
    *value = int(p.textureAlignment);
    break;
  case cudaDevAttrGpuOverlap:
    *value = 1;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = p.multiProcessorCount;
    break;
  case cudaDevAttrCanMapHostMemory:
    *value = 1;
    break;
  case cudaDevAttrSurfaceAlignment:
    *value = int(p.surfaceAlignment);
    break;
  case cudaDevAttrConcurrentKernels:
    *value = 1;
    break;
  case cudaDevAttrEccEnabled:
    *value = 1;
    break;
  case cudaDevAttrMemoryClockRate:
    *value = Device::memoryClockKHz;
    break;
  case cudaDevAttrGlobalMemoryBusWidth:
    *value = p.memoryBusWidth;
    break;
  case cudaDevAttrL2CacheSize:
    *value = p.l2CacheSize;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *value = p.maxThreadsPerMultiProcessor;
    break;
  case cudaDevAttrAsyncEngineCount:
    *value = p.asyncEngineCount;
    break;
  case cudaDevAttrUnifiedAddressing:
    *value = 1;
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = p.major;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *value = p.minor;
    break;
  case cudaDevAttrStreamPrioritiesSupported:
    *value = 1;
    break;
  case cudaDevAttrGlobalL1CacheSupported:
    *value = 1;
    break;
  case cudaDevAttrLocalL1CacheSupported:
    *value = 1;
    break;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    *value = int(p.sharedMemPerMultiprocessor);
    break;
  case cudaDevAttrMaxRegistersPerMultiprocessor:
    *value = p.regsPerMultiprocessor;
    break;
  case cudaDevAttrManagedMemory:
    *value = 1;
    break;
  case cudaDevAttrConcurrentManagedAccess:
    *value = 1;
    break;
  case cudaDevAttrComputePreemptionSupported:
    *value = 1;
    break;
  case cudaDevAttrCanUseHostPointerForRegisteredMem:
    *value = 1;
    break;
  case cudaDevAttrCooperativeLaunch:
    *value = 1;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = int(p.sharedMemPerBlockOptin);
    break;
  case cudaDevAttrMaxBlocksPerMultiprocessor:
    *value = p.maxBlocksPerMultiProcessor;
    break;
  case cudaDevAttrReservedSharedMemoryPerBlock:
    *value = int(p.reservedSharedMemPerBlock);
    break;
  case cudaDevAttrHostRegisterSupported:
    *value = 1;
    break;
  case cudaDevAttrMemoryPoolsSupported:
    *value = 1;
    break;
  case cudaDevAttrSingleToDoublePrecisionPerfRatio:
    *value = 2;
    break;
  default:
    *value = 0; // absent features: textures' sizes, clusters, IPC, …
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
  if (!value || unsigned(limit) >= sizeof limits / sizeof *limits)
    return result(cudaErrorInvalidValue);
  *value = limits[limit];
  return cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (unsigned(limit) >= sizeof limits / sizeof *limits)
    return result(cudaErrorInvalidValue);
  limits[limit] = value;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
  if (config)
    *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  if (!can)
    return result(cudaErrorInvalidValue);
  *can = 0;
  return validDevice(device) && validDevice(peer) ? cudaSuccess : result(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return result(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return result(cudaErrorPeerAccessNotEnabled); }

cudaError_t cudaDriverGetVersion(int *version) {
  if (!version)
    return result(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
}
