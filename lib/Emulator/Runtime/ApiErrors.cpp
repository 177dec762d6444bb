//===- ApiErrors.cpp - errors: state, names, texts ------------------------===//
#include "Api.h"
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

using namespace optiml::emu;

static thread_local cudaError_t lastError = cudaSuccess;

cudaError_t optiml::emu::result(cudaError_t error) {
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

cudaError_t optiml::emu::unsupported(const char *function) {
  static std::mutex mutex;
  static auto *said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said->insert(function).second)
    fprintf(stderr, "optiml: error: %s is not supported by the CPU emulator; it returns cudaErrorNotSupported\n",
            function);
  return result(cudaErrorNotSupported);
}

namespace {
struct ErrorText {
  cudaError_t code;
  const char *name, *text;
};
} // namespace

#define E(name, text) {name, #name, text}
static const ErrorText errorTexts[] = {
    E(cudaSuccess, "no error"),
    E(cudaErrorInvalidValue, "invalid argument"),
    E(cudaErrorMemoryAllocation, "out of memory"),
    E(cudaErrorInitializationError, "initialization error"),
    E(cudaErrorCudartUnloading, "driver shutting down"),
    E(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    E(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    E(cudaErrorInvalidSymbol, "invalid device symbol"),
    E(cudaErrorInvalidHostPointer, "invalid host pointer"),
    E(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    E(cudaErrorInvalidTexture, "invalid texture reference"),
    E(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    E(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    E(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    E(cudaErrorInvalidDeviceFunction, "invalid device function"),
    E(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    E(cudaErrorInvalidDevice, "invalid device ordinal"),
    E(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    E(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    E(cudaErrorNotReady, "device not ready"),
    E(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    E(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    E(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    E(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    E(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    E(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    E(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    E(cudaErrorAssert, "device-side assert triggered"),
    E(cudaErrorLaunchFailure, "unspecified launch failure"),
    E(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    E(cudaErrorNotPermitted, "operation not permitted"),
    E(cudaErrorNotSupported, "operation not supported"),
    E(cudaErrorUnknown, "unknown error"),
};
#undef E

extern "C" {

cudaError_t cudaGetLastError(void) {
  cudaError_t e = lastError;
  lastError = cudaSuccess;
  return e;
}

cudaError_t cudaPeekAtLastError(void) { return lastError; }

const char *cudaGetErrorName(cudaError_t error) {
  for (const ErrorText &e : errorTexts)
    if (e.code == error)
      return e.name;
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  for (const ErrorText &e : errorTexts)
    if (e.code == error)
      return e.text;
  return "unrecognized error code";
}
}
