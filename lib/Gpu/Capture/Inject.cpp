//===- Inject.cpp - what the driver calls ---------------------------------===//
//
// With CUDA_INJECTION64_PATH=liboptiml-capture.so the driver loads this library into a CUDA program when the program
// initializes it, and calls InitializeInjection.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include <cstdio>
#include <cstdlib>

using namespace optiml::gpu;

bool optiml::gpu::succeeded(const Cupti &cupti, CUptiResult result, const char *what) {
  if (result != CUPTI_SUCCESS)
    fprintf(stderr, "optiml: error: %s: %s\n", what, cupti.message(result).c_str());
  return result == CUPTI_SUCCESS;
}

/// The program runs on whatever happens here.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static bool called = false;
  const char *directory = getenv(envCaptureDir), *times = getenv(envKernelTimes);
  bool captures = directory && *directory, measures = times && *times;
  if (called || (!captures && !measures))
    return 1;
  called = true;
  Quiet quiet;
  std::string why;
  const Driver *driver = Driver::get(why);
  const Cupti *cupti = driver ? Cupti::get(why) : nullptr;
  if (!cupti) {
    fprintf(stderr, "optiml: error: cannot observe this program: %s\n", why.c_str());
    return 1;
  }
  if (captures)
    startCapture(*driver, *cupti, directory);
  if (measures)
    startKernelTimes(*driver, *cupti, times, !captures);
  return 1;
}
