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
#include <cstdlib>
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

void optiml::gpu::pauseAfter(double seconds, const Driver &driver, Launches &launches) {
  // Where it cannot be stopped, because a graph is being captured, say, another time.
  constexpr std::chrono::milliseconds again{100};
  std::thread([=, &driver, &launches] {
    Quiet quiet;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    while (!launches.usesSeveralGpus() && !launches.hasEnded() && !pause(driver, launches))
      std::this_thread::sleep_for(again);
  }).detach();
}
