//===- ApiDevice.cpp - the one device and its properties ------------------===//
#include "Api.h"
#include "Fault.h"
#include "Memory.h"
#include "Queue.h"
#include <cstdio>
#include <cstring>
#include <cuda_profiler_api.h>
#include <iterator>

using namespace optiml::emu;

bool optiml::emu::validDevice(int device) { return device == 0; }

static thread_local size_t limits[cudaLimitMaxL2FetchGranularity + 2] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

static void fillProperties(cudaDeviceProp &p) {
  memset(&p, 0, sizeof p);
  snprintf(p.name, sizeof p.name, "NVIDIA H200 (OptiML CPU emulator)");
#define PROPERTY(member, value) p.member = value;
#include "DeviceProperties.def"
#if CUDART_VERSION < 13000
  p.clockRate = Device::clockKHz;
  p.memoryClockRate = Device::memoryClockKHz;
#endif
}

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) { return give(count, 1); }
cudaError_t cudaGetDevice(int *device) { return give(device, 0); }
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
cudaError_t cudaDeviceSynchronize(void) {
  finishAll();
  return cudaSuccess;
}
cudaError_t cudaDeviceReset(void) { return cudaDeviceSynchronize(); }
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
#define ATTRIBUTE(name, is)                                                                                            \
  case cudaDevAttr##name: *value = int(is); break;
#include "DeviceAttributes.def"
  default: *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
  return unsigned(limit) < std::size(limits) ? give(value, limits[limit]) : result(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (unsigned(limit) >= std::size(limits))
    return result(cudaErrorInvalidValue);
  if (limit == cudaLimitPersistingL2CacheSize)
    noteDeviceState("cudaLimitPersistingL2CacheSize");
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

cudaError_t cudaDriverGetVersion(int *version) { return give(version, CUDART_VERSION); }
cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
}
