//===- Device.cpp - one GPU and its context -------------------------------===//
#include "Device.h"
#include <algorithm>
#include <chrono>
#include <thread>

using namespace optiml::gpu;

namespace optiml::gpu {
extern const char *const workerKernels; // PTX of Kernels.cu
}

bool Device::ok(CUresult result, const char *doing) {
  if (result == CUDA_SUCCESS)
    return true;
  error = std::string(doing) + ": " + cu.message(result);
  switch (result) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_UNKNOWN: lost = true; break;
  default: break;
  }
  return false;
}

std::unique_ptr<Device> Device::open(unsigned index, std::string &why) {
  const Driver *driver = Driver::get(why);
  if (!driver)
    return nullptr;
  std::unique_ptr<Device> device(new Device(*driver));
  if (!device->start(index)) {
    why = device->error;
    return nullptr;
  }
  return device;
}

bool Device::start(unsigned index) {
  if (!ok(cu.cuInit(0), "cannot start the CUDA driver"))
    return false;
  int count = 0, driver = 0, value = 0, major = 0, minor = 0;
  if (!ok(cu.cuDeviceGetCount(&count), "cannot count the GPUs"))
    return false;
  if (int(index) >= count)
    return fail("there is no GPU " + std::to_string(index) + "; this machine shows " + std::to_string(count));
  char name[256] = "";
  size_t memory = 0;
  bool good = ok(cu.cuDeviceGet(&device, int(index)), "cannot take the GPU") &&
              ok(cu.cuDeviceGetName(name, sizeof name, device), "cannot read the GPU's name") &&
              ok(cu.cuDriverGetVersion(&driver), "cannot read the driver's version") &&
              ok(cu.cuDevicePrimaryCtxRetain(&context, device), "cannot make a context") &&
              ok(cu.cuCtxSetCurrent(context), "cannot use the context") &&
              ok(cu.cuDeviceTotalMem(&memory, device), "cannot read the size of memory");
  if (!good)
    return false;
  info.name = name;
  info.driver = unsigned(driver);
  info.devices = unsigned(count);
  info.memoryBytes = memory;
  cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  cu.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  info.arch = unsigned(10 * major + minor);
  if (cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) == CUDA_SUCCESS)
    info.multiprocessors = unsigned(value);
  if (cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) == CUDA_SUCCESS)
    info.l2Bytes = uint64_t(value);
  return ok(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cannot make a stream");
}

// Only when something is to be run: translating them takes the driver a while.
bool Device::loadKernels() {
  if (module)
    return true;
  auto get = [&](CUfunction &into, const char *name) { return ok(cu.cuModuleGetFunction(&into, module, name), name); };
  counterMemory = allocate(2 * counters * sizeof(Place), "counters");
  return counterMemory && ok(cu.cuModuleLoadData(&module, workerKernels), "cannot load the worker's kernels") &&
         get(bitsKernel, "optimlCompareBits") && get(floatsKernel, "optimlCompareFloats") &&
         get(doublesKernel, "optimlCompareDoubles") && get(halvesKernel, "optimlCompareHalves") &&
         get(bfloatsKernel, "optimlCompareBFloats") && get(recordsKernel, "optimlCompareRecords") &&
         get(cellsKernel, "optimlCheckCells") && get(patternKernel, "optimlCheckPattern") &&
         get(writtenKernel, "optimlCheckWritten") && get(poisonKernel, "optimlPoison") && get(spinKernel, "optimlSpin");
}

CUdeviceptr Device::allocate(uint64_t bytes, const char *what) {
  CUdeviceptr at = 0;
  return ok(cu.cuMemAlloc(&at, std::max<uint64_t>(1, bytes)), what) ? at : 0;
}

bool Device::upload(CUdeviceptr to, const void *from, uint64_t bytes) {
  return !bytes || ok(cu.cuMemcpyHtoD(to, from, bytes), "copying to the GPU");
}
bool Device::download(void *to, CUdeviceptr from, uint64_t bytes) {
  return !bytes || ok(cu.cuMemcpyDtoH(to, from, bytes), "copying from the GPU");
}
bool Device::copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
  return !bytes || ok(cu.cuMemcpyDtoDAsync(to, from, bytes, stream), "copying on the GPU");
}
bool Device::fill(CUdeviceptr at, unsigned char value, uint64_t bytes) {
  return !bytes || ok(cu.cuMemsetD8Async(at, value, bytes, stream), "filling memory");
}

Device::Wait Device::wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  while (true) {
    CUresult result = cu.cuStreamQuery(stream);
    if (result == CUDA_SUCCESS)
      return Wait::Done;
    if (result != CUDA_ERROR_NOT_READY) {
      ok(result, "running the kernel");
      lost = true;
      return Wait::Failed;
    }
    double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (elapsed > seconds) {
      lost = true; // a kernel cannot be stopped but by ending the process
      error = "the kernel did not end within " + std::to_string(seconds).substr(0, 5) + " s";
      return Wait::TimedOut;
    }
    if (elapsed > 300e-6)
      std::this_thread::sleep_for(std::chrono::microseconds(elapsed > 0.05 ? 1000 : 20));
  }
}

bool Device::finish() {
  switch (wait(30)) {
  case Wait::Done: return true;
  case Wait::TimedOut: return fail("the GPU did not answer within 30 s");
  case Wait::Failed: return false;
  }
  return false;
}

bool Device::launch(CUfunction f, uint64_t items, void **arguments) {
  unsigned blocks = unsigned(std::clamp<uint64_t>((items + 255) / 256, 1, 8 * std::max(1u, info.multiprocessors)));
  return ok(cu.cuLaunchKernel(f, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr), "launching a check");
}

bool Device::compareBits(CUdeviceptr actual, CUdeviceptr expected, uint64_t bytes, unsigned place) {
  CUdeviceptr at = counter(place);
  void *arguments[] = {&actual, &expected, &bytes, &at};
  return !bytes || launch(bitsKernel, bytes / 4, arguments);
}

bool Device::compareNumbers(Compare how, CUdeviceptr actual, CUdeviceptr expected, uint64_t bytes, double relative,
                            double typical, unsigned place) {
  if (how == Compare::Bits)
    return compareBits(actual, expected, bytes, place);
  CUdeviceptr at = counter(place);
  CUfunction kernel = how == Compare::Float    ? floatsKernel
                      : how == Compare::Double ? doublesKernel
                      : how == Compare::Half   ? halvesKernel
                                               : bfloatsKernel;
  uint64_t size = how == Compare::Float ? 4 : how == Compare::Double ? 8 : 2, n = bytes / size;
  void *arguments[] = {&actual, &expected, &n, &relative, &typical, &at};
  return !n || launch(kernel, n, arguments);
}

bool Device::compareRecords(CUdeviceptr actual, CUdeviceptr expected, uint64_t bytes, CUdeviceptr kinds,
                            uint64_t inRecord, double relative, double typical, unsigned place) {
  CUdeviceptr at = counter(place);
  uint64_t words = bytes / 4;
  void *arguments[] = {&actual, &expected, &words, &kinds, &inRecord, &relative, &typical, &at};
  return !words || launch(recordsKernel, words, arguments);
}

bool Device::checkCells(CUdeviceptr actual, CUdeviceptr expected, CUdeviceptr cells, uint64_t n, unsigned place) {
  CUdeviceptr at = counter(place);
  void *arguments[] = {&actual, &expected, &cells, &n, &at};
  return !n || launch(cellsKernel, n, arguments);
}

bool Device::checkPattern(CUdeviceptr data, uint64_t bytes, unsigned char value, unsigned place) {
  CUdeviceptr at = counter(place);
  unsigned pattern = value;
  void *arguments[] = {&data, &bytes, &pattern, &at};
  return !bytes || launch(patternKernel, bytes, arguments);
}

bool Device::checkWritten(CUdeviceptr result, CUdeviceptr poisoned, CUdeviceptr expected, uint64_t bytes,
                          unsigned place, unsigned written) {
  CUdeviceptr at = counter(place), count = counter(written);
  uint64_t words = bytes / 4;
  void *arguments[] = {&result, &poisoned, &expected, &words, &at, &count};
  return !words || launch(writtenKernel, words, arguments);
}

bool Device::poison(CUdeviceptr data, uint64_t bytes, bool floating, int low, int high) {
  if (!loadKernels())
    return false;
  int isFloating = floating;
  void *arguments[] = {&data, &bytes, &isFloating, &low, &high};
  return !bytes || launch(poisonKernel, bytes / 4, arguments);
}

bool Device::spin(unsigned nanoseconds) {
  void *arguments[] = {&nanoseconds};
  return loadKernels() &&
         ok(cu.cuLaunchKernel(spinKernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "launching a pause");
}

bool Device::flushL2() {
  uint64_t bytes = 2 * std::max<uint64_t>(info.l2Bytes, 1 << 20);
  if (!flushMemory && !(flushMemory = allocate(bytes, "memory to flush the cache with")))
    return false;
  return fill(flushMemory, 0, bytes);
}

bool Device::resetCounters(unsigned n) {
  return loadKernels() && fill(counterMemory, 0xff, n * sizeof(Place)) &&
         fill(counter(counters), 0xff, n * sizeof(Place)); // strays
}

bool Device::setCounter(unsigned index, Place value) {
  return ok(cu.cuMemsetD32Async(counter(index), unsigned(value), 1, stream), "setting a counter") &&
         ok(cu.cuMemsetD32Async(counter(index) + 4, unsigned(value >> 32), 1, stream), "setting a counter");
}

bool Device::readCounters(Place *into, unsigned n) { return download(into, counterMemory, n * sizeof(Place)); }
