//===- Api.h - shared by the CUDA runtime's entry points --------*- C++ -*-===//
//
// The functions of cuda_runtime_api.h, on the CPU. Work on streams goes through Queue.h. Each file that includes this
// defines some of the functions; the header checks the signatures.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_API_H
#define OPTIML_LIB_EMULATOR_RUNTIME_API_H

#include <cuda_runtime_api.h>

namespace optiml::emu {

/// Remembers an error for cudaGetLastError and passes it on.
cudaError_t result(cudaError_t error);
/// Answers by `value`; an error where there is no place for it.
template <typename T> cudaError_t give(T *into, T value) {
  if (!into)
    return result(cudaErrorInvalidValue);
  *into = value;
  return cudaSuccess;
}
/// Says once on stderr that `function` is not supported; result(cudaErrorNotSupported).
cudaError_t unsupported(const char *function);

bool validStream(cudaStream_t stream);
/// Of a valid stream, whether the legacy stream and it do not wait for each other.
bool isNonBlocking(cudaStream_t stream);
/// One device: 0.
bool validDevice(int device);

/// The H200 that programs see.
struct Device {
  static constexpr int multiprocessors = 132;
  static constexpr int maxThreadsPerBlock = 1024;
  static constexpr int maxBlocksOnYZ = 65535;
  static constexpr int maxThreadsPerMultiprocessor = 2048;
  static constexpr int maxBlocksPerMultiprocessor = 32;
  static constexpr int registersPerBlock = 65536;
  static constexpr int sharedPerBlock = 48 << 10;
  static constexpr int sharedPerBlockOptin = 227 << 10;
  static constexpr int sharedPerMultiprocessor = 228 << 10;
  static constexpr int reservedSharedPerBlock = 1 << 10;
  static constexpr int clockKHz = 1980000;
  static constexpr int memoryClockKHz = 3201000;
  static constexpr int memoryBusBits = 6144;
  static constexpr int l2Bytes = 60 << 20;
};

} // namespace optiml::emu

/// Also defines the names that CUDA_API_PER_THREAD_DEFAULT_STREAM selects. In the file that defines `function`.
#define OPTIML_PER_THREAD(function, suffix)                                                                            \
  extern "C" decltype(function) function##suffix __attribute__((alias(#function)))

#endif
