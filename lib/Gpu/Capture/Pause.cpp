//===- Pause.cpp - a program that has been observed long enough -----------===//
//
// A thread of the observed program that sleeps, and then stops the whole process (SIGSTOP), between two launches and
// with the GPU idle, after the launches and times so far are written. Whoever observes reads them, has the GPU for
// itself, and lets the program go on (SIGCONT) or ends it.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include "Launches.h"
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>
#include <unistd.h>

using namespace optiml::gpu;

/// The search needs room for copies of the program's buffers.
static bool leavesMemory(const Driver &driver) {
  size_t free = 0, all = 0;
  return driver.cuMemGetInfo(&free, &all) == CUDA_SUCCESS && free >= all / 2;
}

/// False: not now.
static bool pause(const Driver &driver, Launches &launches) {
  CUcontext context = launches.context();
  if (!context || driver.cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return false;
  // Once without the lock: a kernel that runs may wait for what the host does next.
  if (driver.cuCtxSynchronize() != CUDA_SUCCESS || !leavesMemory(driver) || !launches.hold())
    return false;
  if (driver.cuCtxSynchronize() == CUDA_SUCCESS && writeTimesSoFar())
    kill(getpid(), SIGSTOP);
  launches.release();
  return true;
}

void optiml::gpu::pauseAfter(const char *when, const Driver &driver, Launches &launches) {
  double first = 0, last = 0;
  unsigned kernels = 0;
  if (sscanf(when, "%lf,%lf,%u", &first, &last, &kernels) != 3) {
    fprintf(stderr, "optiml: warning: %s=%s is not understood; ignored\n", envPauseAfter, when);
    return;
  }
  std::thread([=, &driver, &launches] {
    using Clock = std::chrono::steady_clock;
    // Also where it cannot be stopped now, because a graph is being captured, say.
    constexpr std::chrono::milliseconds again{50};
    const Clock::time_point began = Clock::now();
    Quiet quiet;
    while (!launches.usesSeveralGpus() && !launches.hasEnded()) {
      std::this_thread::sleep_for(again);
      const double passed = std::chrono::duration<double>(Clock::now() - began).count();
      if (passed >= first && (passed >= last || launches.kernelsSeen() >= kernels) && pause(driver, launches))
        return;
    }
  }).detach();
}
