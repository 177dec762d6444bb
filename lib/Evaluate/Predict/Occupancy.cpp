//===- Occupancy.cpp - resident blocks, by the toolkit's calculator -------===//
#include "optiml/Evaluate/Predict/PerformanceModel.h"
#include <algorithm>
#include <climits>
#include <cuda_occupancy.h>

using namespace optiml;

static cudaOccDeviceProp propertiesOf(const GpuSpec &gpu) {
  cudaOccDeviceProp p;
  p.computeMajor = int(gpu.arch / 10);
  p.computeMinor = int(gpu.arch % 10);
  p.maxThreadsPerBlock = int(gpu.maxThreadsPerBlock);
  p.maxThreadsPerMultiprocessor = int(gpu.maxThreadsPerSM);
  p.regsPerBlock = int(gpu.registersPerBlock);
  p.regsPerMultiprocessor = int(gpu.registersPerSM);
  p.warpSize = int(gpu.warpSize);
  p.sharedMemPerBlock = gpu.sharedPerBlock;
  p.sharedMemPerMultiprocessor = gpu.sharedPerSM;
  p.numSms = int(gpu.sms);
  p.sharedMemPerBlockOptin = gpu.sharedPerBlockOptin;
  p.reservedSharedMemPerBlock = gpu.reservedSharedPerBlock;
  return p;
}

static const char *limitName(unsigned factors) {
  if (factors & OCC_LIMIT_SHARED_MEMORY)
    return "shared memory";
  if (factors & OCC_LIMIT_REGISTERS)
    return "registers";
  if (factors & OCC_LIMIT_WARPS)
    return "warps";
  return "blocks";
}

Occupancy optiml::computeOccupancy(const GpuSpec &gpu, const Resources &resources, unsigned threads,
                                   uint64_t dynamicShared) {
  Occupancy occupancy;
  if (threads == 0 || threads > gpu.maxThreadsPerBlock) {
    occupancy.limit = "a block of " + std::to_string(threads) + " threads";
    return occupancy;
  }
  // Whether the program has raised the kernel's limit is for whoever runs it to say.
  const uint64_t shared = resources.staticShared + dynamicShared;
  if (resources.staticShared > gpu.sharedPerBlock || shared > std::max(gpu.sharedPerBlock, gpu.sharedPerBlockOptin)) {
    occupancy.limit = std::to_string(shared) + " bytes of shared memory a block";
    return occupancy;
  }
  cudaOccDeviceProp properties = propertiesOf(gpu);
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = INT_MAX;
  attributes.numRegs = int(resources.registers ? resources.registers : 32); // 0: not known
  attributes.sharedSizeBytes = resources.staticShared;
  attributes.maxDynamicSharedSizeBytes = dynamicShared;
  attributes.numBlockBarriers = 1;
  if (shared > gpu.sharedPerBlock)
    attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  cudaOccDeviceState state;
  cudaOccResult result;
  cudaOccError error =
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, int(threads), dynamicShared);
  if (error == CUDA_OCC_ERROR_UNKNOWN_DEVICE) {
    // Newer than the toolkit's calculator: the newest it knows counts alike.
    properties.computeMajor = 9;
    properties.computeMinor = 0;
    error =
        cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, int(threads), dynamicShared);
  }
  if (error != CUDA_OCC_SUCCESS || result.activeBlocksPerMultiprocessor <= 0) {
    occupancy.limit = std::to_string(resources.registers) + " registers a thread with " + std::to_string(threads) +
                      " threads a block";
    return occupancy;
  }
  unsigned warps = (threads + gpu.warpSize - 1) / gpu.warpSize;
  occupancy.blocksPerSM = unsigned(result.activeBlocksPerMultiprocessor);
  occupancy.share = double(occupancy.blocksPerSM * warps) / gpu.warpsPerSM();
  occupancy.limit = limitName(result.limitingFactors);
  return occupancy;
}
