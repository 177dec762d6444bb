//===- Capture.cpp - recording a program's launches as a workload ---------===//
#include "AroundLaunch.h"
#include "Settings.h"
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "optiml/Workload/Signature.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <regex>

using namespace optiml;
using namespace optiml::emu;

namespace {

class Capture {
public:
  static Capture &get() {
    static Capture *c = new Capture;
    return *c;
  }
  bool enabled() const { return on; }
  void before(const Launch &launch);
  void after();
  void failed();
  void finish();

private:
  Capture();

  std::mutex mutex; ///< from before() to after() when a launch is being recorded
  std::atomic<bool> on = false;
  Recorder recorder;
  std::regex kernels; ///< whose launches are recorded
  // The launch being recorded.
  std::atomic<bool> active = false;
  static thread_local bool mine; ///< this thread records it
  std::vector<Allocation *> buffers;
};

thread_local bool Capture::mine = false;

Capture::Capture() {
  const Settings &s = settings();
  if (s.captureDir.empty())
    return;
  const char *expression = getenv(envCaptureKernels);
  try {
    kernels.assign(expression ? expression : "", std::regex::extended);
  } catch (const std::regex_error &e) {
    fprintf(stderr, "optiml: error: %s=%s: %s; nothing is captured\n", envCaptureKernels, expression, e.what());
    return;
  }
  on = recorder.open(s.captureDir, s.captureLimits);
  if (on)
    atexit(finishCapture);
}

const void *contents(const Allocation &a) { return reinterpret_cast<const void *>(a.address); }

/// Everything but the buffers.
LaunchImage imageOf(const Launch &l) {
  LaunchImage image;
  image.kernel = l.kernel->symbol;
  image.name = l.kernel->name;
  image.grid = l.grid;
  image.block = l.block;
  image.sharedBytes = l.dynamicShared;
  std::vector<uint64_t> bufferBytes;
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    const ParamDesc &p = l.kernel->params[i];
    ArgumentImage a;
    a.bytes.assign(static_cast<const char *>(l.args[i]), p.size);
    a.isPointer = p.isPointer;
    uint64_t value = 0;
    if (p.isPointer)
      memcpy(&value, l.args[i], 8);
    Allocation *pointee = p.isPointer ? Memory::get().find(value) : nullptr;
    bufferBytes.push_back(pointee ? pointee->bytes : 0);
    image.arguments.push_back(std::move(a));
  }
  image.launchClass = launchClassOf(image, bufferBytes);
  return image;
}

void Capture::before(const Launch &l) {
  std::unique_lock lock(mutex);
  const std::string symbol = l.kernel->symbol;
  if (!std::regex_search(symbol, kernels) && !std::regex_search(demangled(symbol), kernels))
    return recorder.skip();
  if (!recorder.begin(imageOf(l)))
    return;
  buffers = reachableBuffers(l);
  uint64_t bytes = 0;
  for (Allocation *a : buffers)
    bytes += a->bytes;
  if (!recorder.admit(bytes))
    return;
  for (Allocation *a : buffers) {
    BufferImage b;
    b.address = a->address;
    b.bytes = a->bytes;
    b.symbol = a->symbol;
    b.constant = a->constant;
    b.initial = a->kind == MemoryKind::Symbol && memcmp(contents(*a), a->initial.data(), a->bytes) == 0;
    if (!recorder.addBuffer(std::move(b), contents(*a))) {
      on = false;
      return;
    }
  }
  recorder.linkArguments();
  active = mine = true;
  lock.release(); // until after()
}

void Capture::failed() {
  if (!std::exchange(mine, false))
    return;
  std::unique_lock lock(mutex, std::adopt_lock);
  active = false;
  recorder.abandon("its launch failed");
}

void Capture::after() {
  if (!std::exchange(mine, false))
    return;
  std::unique_lock lock(mutex, std::adopt_lock);
  active = false;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!recorder.setAfter(i, contents(*buffers[i]))) {
      on = false;
      return;
    }
  recorder.commit();
  lock.unlock();
  finish(); // so that what is there survives a program that is killed
}

void Capture::finish() {
  // A fault within the launch that is being recorded ends here too: the lock is that launch's, and what was recorded
  // before it is complete.
  std::unique_lock lock(mutex, std::defer_lock);
  if (!active)
    lock.lock();
  if (on)
    on = recorder.write();
}

} // namespace

void optiml::emu::captureBefore(const Launch &launch) {
  if (Capture::get().enabled())
    Capture::get().before(launch);
}

void optiml::emu::captureFailed() {
  if (Capture::get().enabled())
    Capture::get().failed();
}

void optiml::emu::captureAfter(const Launch &) {
  if (Capture::get().enabled())
    Capture::get().after();
}

void optiml::emu::finishCapture() {
  if (Capture::get().enabled())
    Capture::get().finish();
}
