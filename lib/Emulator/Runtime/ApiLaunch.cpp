//===- ApiLaunch.cpp - registration and kernel launches -------------------===//
#include "Api.h"
#include "AroundLaunch.h"
#include "Coverage.h"
#include "Fault.h"
#include "Modules.h"
#include "Queue.h"
#include "Scheduler.h"
#include "Settings.h"
#include "optiml/Workload/RuntimeSettings.h"
#include <cstdio>
#include <cstring>
#include <cuda_occupancy.h>
#include <unistd.h>

using namespace optiml::emu;

namespace {
struct CallConfiguration {
  dim3 grid, block;
  size_t shared;
  void *stream;
};
} // namespace

static std::vector<CallConfiguration> &configurations() {
  static thread_local std::vector<CallConfiguration> stack;
  return stack;
}

/// Bytes of the kernel's own __shared__ variables, without the gaps that checking leaves between them.
static uint64_t staticShared(const KernelDesc &k) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < k.numSharedVars; ++i)
    sum += k.sharedVars[i].size;
  return sum;
}

// The emulator does not allocate registers; 32 a thread is a usual number and never limits a block.
static constexpr int assumedRegisters = 32;

static int blocksPerMultiprocessor(const Kernel &kernel, int blockSize, size_t dynamicShared) {
  cudaOccDeviceProp device;
  device.computeMajor = 9;
  device.computeMinor = 0;
  device.maxThreadsPerBlock = Device::maxThreadsPerBlock;
  device.maxThreadsPerMultiprocessor = Device::maxThreadsPerMultiprocessor;
  device.regsPerBlock = device.regsPerMultiprocessor = Device::registersPerBlock;
  device.warpSize = 32;
  device.sharedMemPerBlock = Device::sharedPerBlock;
  device.sharedMemPerMultiprocessor = Device::sharedPerMultiprocessor;
  device.numSms = Device::multiprocessors;
  device.sharedMemPerBlockOptin = Device::sharedPerBlockOptin;
  device.reservedSharedMemPerBlock = Device::reservedSharedPerBlock;
  cudaOccFuncAttributes f;
  f.maxThreadsPerBlock = kernel.desc->maxThreads ? int(kernel.desc->maxThreads) : Device::maxThreadsPerBlock;
  f.numRegs = assumedRegisters;
  f.sharedSizeBytes = staticShared(*kernel.desc);
  f.partitionedGCConfig = PARTITIONED_GC_OFF;
  f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  f.maxDynamicSharedSizeBytes = Device::sharedPerBlockOptin - f.sharedSizeBytes;
  cudaOccDeviceState state;
  cudaOccResult result;
  return cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &f, &state, blockSize, dynamicShared) ==
                 CUDA_OCC_SUCCESS
             ? result.activeBlocksPerMultiprocessor
             : 0;
}

static cudaError_t checkGeometry(const Kernel &kernel, dim3 grid, dim3 block, size_t shared) {
  if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > Device::maxBlocksOnYZ ||
      grid.z > Device::maxBlocksOnYZ)
    return cudaErrorInvalidConfiguration;
  if (!block.x || !block.y || !block.z || block.x > 1024 || block.y > 1024 || block.z > 64 ||
      uint64_t(block.x) * block.y * block.z > 1024)
    return cudaErrorInvalidConfiguration;
  uint32_t threads = block.x * block.y * block.z;
  if (kernel.desc->maxThreads && threads > kernel.desc->maxThreads)
    return cudaErrorLaunchOutOfResources;
  uint64_t own = staticShared(*kernel.desc);
  uint64_t allowed = kernel.maxDynamicShared        ? uint64_t(kernel.maxDynamicShared)
                     : own < Device::sharedPerBlock ? Device::sharedPerBlock - own
                                                    : 0;
  if (shared > allowed || own + shared > Device::sharedPerBlockOptin)
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

/// Whether OPTIML_EMU_SKIP_KERNEL names it. `name` may have namespaces, template arguments and parameters.
static bool isSkipped(const std::string &name) {
  const std::string &skipped = settings().skipKernel;
  if (skipped.empty() || skipped == "*")
    return !skipped.empty();
  static const std::string unnamed = "(anonymous namespace)::";
  size_t scope = name.rfind(unnamed);
  std::string own = scope == std::string::npos ? name : name.substr(scope + unnamed.size());
  own = own.substr(0, own.find_first_of("<("));
  own = own.substr(own.find_last_of(": ") == std::string::npos ? 0 : own.find_last_of(": ") + 1);
  return own == skipped;
}

namespace {
/// A launch's arguments, which the caller need not keep.
class Parameters {
public:
  Parameters(const KernelDesc &kernel, void **args) {
    for (uint32_t i = 0; i < kernel.numParams; ++i)
      values.emplace_back(static_cast<char *>(args[i]), static_cast<char *>(args[i]) + kernel.params[i].size);
  }
  void **pointers() {
    addresses.clear();
    for (std::vector<char> &value : values)
      addresses.push_back(value.data());
    return addresses.data();
  }

private:
  std::vector<std::vector<char>> values; // aligned for everything
  std::vector<void *> addresses;
};
} // namespace

/// As cooperative_groups/details/driver_abi.h has it: its size, and the word that grid.sync() counts blocks in.
static uint64_t gridWorkspace() {
  static Allocation *place = Memory::get().allocate(64, MemoryKind::Heap, "a cooperative launch");
  if (!place)
    return 0;
  const uint32_t words[2] = {64, 0};
  memset(reinterpret_cast<void *>(place->address), 0, place->bytes);
  memcpy(reinterpret_cast<void *>(place->address), words, sizeof words);
  return place->address;
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream,
                          bool cooperative) {
  Kernel *kernel = Modules::get().kernel(function);
  if (!kernel) {
    fprintf(stderr, "optiml: error: a launch names a kernel that no emulated device module contains\n");
    return result(cudaErrorInvalidDeviceFunction);
  }
  if (!validStream(stream))
    return result(cudaErrorInvalidResourceHandle);
  noteGrid(*kernel->module, *kernel->desc, {grid.x, grid.y, grid.z});
  if (cudaError_t e = checkGeometry(*kernel, grid, block, shared))
    return result(e);
  if (cooperative && uint64_t(grid.x) * grid.y * grid.z >
                         uint64_t(blocksPerMultiprocessor(*kernel, int(block.x * block.y * block.z), shared)) *
                             Device::multiprocessors)
    return result(cudaErrorCooperativeLaunchTooLarge);
  if (isSkipped(kernel->desc->name))
    return cudaSuccess;
  installCrashHandler();
  auto run = [=, parameters = Parameters(*kernel->desc, args)]() mutable {
    Launch l;
    l.kernel = kernel->desc;
    l.module = kernel->module;
    l.grid = {grid.x, grid.y, grid.z};
    l.block = {block.x, block.y, block.z};
    l.dynamicShared = uint32_t(shared);
    l.args = parameters.pointers();
    l.workspace = cooperative ? gridWorkspace() : 0;
    l.orderSeed = settings().orderSeed;
    noteRun(l);
    freshBefore(l, settings().workers);
    copyLogBefore(l);
    captureBefore(l);
    std::string error;
    if (!runLaunch(l, settings().workers, error)) {
      fprintf(stderr, "optiml: error: kernel %s could not run: %s\n", kernel->desc->name, error.c_str());
      captureFailed();
      return result(cudaErrorLaunchFailure);
    }
    captureAfter(l);
    return cudaSuccess;
  };
  return enqueue(stream, std::move(run));
}

extern "C" {

// Registration, called by constructors that the compiler writes into every CUDA object file.
void **__cudaRegisterFatBinary(void *) {
  static void *handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 0; }

void __cudaRegisterFunction(void **, const char *hostFunction, char *, const char *deviceName, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *) {
  Modules::get().addFunction(hostFunction, deviceName);
}

void __cudaRegisterVar(void **, char *hostVariable, char *, const char *deviceName, int, size_t, int, int) {
  Modules::get().addVariable(hostVariable, deviceName);
}

void __cudaRegisterManagedVar(void **, void **, char *, const char *name, int, size_t, int, int) {
  fprintf(stderr, "optiml: error: __managed__ variable '%s' is not supported by the CPU emulator\n", name);
  _exit(faultExitCode);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (configurations().empty())
    return result(cudaErrorMissingConfiguration);
  CallConfiguration c = configurations().back();
  configurations().pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<void **>(stream) = c.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream) {
  return launch(function, grid, block, args, shared, stream, false);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream) {
  return launch(function, grid, block, args, shared, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args) {
  if (!config)
    return result(cudaErrorInvalidValue);
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute &a = config->attrs[i];
    if (a.id == cudaLaunchAttributeCooperative)
      cooperative = a.val.cooperative != 0;
    if (a.id == cudaLaunchAttributeClusterDimension && a.val.clusterDim.x * a.val.clusterDim.y * a.val.clusterDim.z > 1)
      return unsupported("a launch in thread block clusters");
  }
  return launch(function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream,
                cooperative);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *into, const void *function) {
  Kernel *kernel = Modules::get().kernel(function);
  if (!into)
    return result(cudaErrorInvalidValue);
  if (!kernel)
    return result(cudaErrorInvalidDeviceFunction);
  *into = {};
  uint64_t own = staticShared(*kernel->desc);
  into->sharedSizeBytes = own;
  into->maxThreadsPerBlock = kernel->desc->maxThreads ? int(kernel->desc->maxThreads) : Device::maxThreadsPerBlock;
  into->numRegs = assumedRegisters;
  into->ptxVersion = into->binaryVersion = int(kernel->module->arch);
  into->maxDynamicSharedSizeBytes = kernel->maxDynamicShared       ? kernel->maxDynamicShared
                                    : own < Device::sharedPerBlock ? Device::sharedPerBlock - int(own)
                                                                   : 0;
  into->preferredShmemCarveout = kernel->carveout;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  Kernel *kernel = Modules::get().kernel(function);
  if (!kernel)
    return result(cudaErrorInvalidDeviceFunction);
  switch (attribute) {
  case cudaFuncAttributeMaxDynamicSharedMemorySize:
    if (value < 0 || uint64_t(value) + staticShared(*kernel->desc) > Device::sharedPerBlockOptin)
      return result(cudaErrorInvalidValue);
    kernel->maxDynamicShared = value;
    return cudaSuccess;
  case cudaFuncAttributePreferredSharedMemoryCarveout:
    if (value < -1 || value > 100)
      return result(cudaErrorInvalidValue);
    kernel->carveout = value;
    return cudaSuccess;
  default: return cudaSuccess;
  }
}

cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache) {
  return Modules::get().kernel(function) ? cudaSuccess : result(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int blockSize,
                                                                   size_t dynamicShared, unsigned) {
  Kernel *kernel = Modules::get().kernel(function);
  if (!blocks || blockSize <= 0)
    return result(cudaErrorInvalidValue);
  if (!kernel)
    return result(cudaErrorInvalidDeviceFunction);
  *blocks = blocksPerMultiprocessor(*kernel, blockSize, dynamicShared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int blockSize,
                                                          size_t dynamicShared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, blockSize, dynamicShared, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int blockSize) {
  Kernel *kernel = Modules::get().kernel(function);
  if (!bytes || blocks <= 0 || blockSize <= 0)
    return result(cudaErrorInvalidValue);
  if (!kernel)
    return result(cudaErrorInvalidDeviceFunction);
  int64_t each = Device::sharedPerMultiprocessor / blocks - Device::reservedSharedPerBlock;
  each = std::min<int64_t>(each, Device::sharedPerBlockOptin) - int64_t(staticShared(*kernel->desc));
  *bytes = each > 0 ? size_t(each) : 0;
  return cudaSuccess;
}

#define PER_THREAD_LAUNCH(function, suffix) OPTIML_PER_THREAD(function, suffix);
#include "PerThread.def"
}
