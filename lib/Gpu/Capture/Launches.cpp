//===- Launches.cpp - recording launches on the GPU -----------------------===//
#include "Launches.h"
#include "Reach.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/file.h>

using namespace optiml;
using namespace optiml::gpu;

bool Launches::open(const std::string &directory, const CaptureLimits &limits, const char *expression) {
  std::string error;
  if (expression && *expression && !kernels.select(expression, error)) {
    fprintf(stderr, "optiml: error: OPTIML_CAPTURE_KERNELS=%s: %s; nothing is captured\n", expression, error.c_str());
    return false;
  }
  if (!recorder.open(directory, limits))
    return false;
  // The environment reaches every program that this one starts. The lock goes when the process does.
  int folder = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fprintf(stderr, "optiml: warning: another process is captured into '%s'; this one is not\n", directory.c_str());
    return false;
  }
  return true;
}

/// Whether the driver must not be asked to wait now: a graph is being captured somewhere, or the launch becomes a node
/// of one.
bool Launches::capturing(CUstream stream) {
  if (!capturedStreams.empty())
    return true;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Launches::streamCaptureBegins(CUstream stream) {
  std::lock_guard lock(mutex);
  capturedStreams.push_back(stream);
}

void Launches::streamCaptureEnds(CUstream stream) {
  std::lock_guard lock(mutex);
  auto it = std::find(capturedStreams.begin(), capturedStreams.end(), stream);
  if (it != capturedStreams.end())
    capturedStreams.erase(it);
}

static constexpr const char *graphMessage = "launches in CUDA graphs: they are not captured";

void Launches::graphLaunched() {
  if (graphsNoted.exchange(true))
    return;
  std::lock_guard lock(mutex);
  recorder.note(graphMessage);
}

/// Values of the parameters, from either form of cuLaunchKernel.
bool Launches::argumentsOf(const LaunchCall &call, const KernelInfo &info, LaunchImage &image) {
  const char *packed = nullptr;
  size_t packedBytes = 0;
  for (void **e = call.extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) {
    if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
      packed = static_cast<const char *>(e[1]);
    else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE && e[1])
      packedBytes = *static_cast<const size_t *>(e[1]);
    else
      return false;
  }
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const KernelParameter &p = info.parameters[i];
    const char *value = call.parameters                               ? static_cast<const char *>(call.parameters[i])
                        : packed && p.offset + p.bytes <= packedBytes ? packed + p.offset
                                                                      : nullptr;
    if (!value)
      return false;
    ArgumentImage a;
    a.bytes.assign(value, p.bytes);
    a.isPointer = p.pointer;
    image.arguments.push_back(std::move(a));
  }
  return true;
}

bool Launches::driverRange(uint64_t address, MemoryRange &into) const {
  constexpr uint64_t least = 1 << 16, most = uint64_t(1) << 47; // not an integer, not beyond what a workload holds
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  if (address < least || address >= most ||
      driver.cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS ||
      driver.cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) != CUDA_SUCCESS)
    return false;
  into = {begin, bytes};
  return begin && into.contains(address);
}

bool Launches::before(const LaunchCall &call, const char *symbolName) {
  std::unique_lock lock(mutex);
  if (ended || !recorder.good())
    return false;
  if (capturing(call.stream)) {
    recorder.note(graphMessage);
    return false;
  }
  KernelInfo &info = kernels.get(call.function, symbolName);
  if (!info.selected) {
    recorder.skip();
    return false;
  }
  LaunchImage image;
  image.kernel = info.symbol;
  image.name = info.name;
  image.grid = call.grid;
  image.block = call.block;
  image.sharedBytes = call.sharedBytes;
  std::string problem = info.problem;
  if (problem.empty() && call.clusters)
    problem = "it is launched in clusters, which a workload does not hold";
  if (problem.empty() && !argumentsOf(call, info, image))
    problem = "its arguments are not given in a known way";
  if (!problem.empty()) {
    recorder.skip();
    recorder.note(info.name + ": " + problem);
    return false;
  }

  std::vector<uint64_t> bufferBytes;
  foundByDriver.clear();
  for (size_t i = 0; i < image.arguments.size(); ++i) {
    ArgumentImage &a = image.arguments[i];
    uint64_t size = 0;
    for (size_t at = (8 - info.parameters[i].offset % 8) % 8; at + 8 <= a.bytes.size(); at += 8) {
      uint64_t word;
      memcpy(&word, a.bytes.data() + at, 8);
      MemoryRange range;
      bool hits = allocations.find(word, range);
      if (!hits && (hits = driverRange(word, range)))
        foundByDriver.push_back(range);
      if (!info.typesKnown && a.bytes.size() == 8)
        a.isPointer = hits;
      size = hits ? range.bytes : 0;
    }
    bufferBytes.push_back(a.isPointer ? size : 0);
  }
  image.launchClass = launchClassOf(image, bufferBytes);
  if (!recorder.begin(std::move(image)))
    return false;
  std::string why;
  if (!record(info, why)) {
    if (!why.empty())
      recorder.abandon(why);
    return false;
  }
  lock.release(); // until after()
  return true;
}

/// Stores what the launch that was begun may reach. False when it cannot be recorded; `why` is empty when the recorder
/// has said so itself.
bool Launches::record(KernelInfo &info, std::string &why) {
  // What the driver would load at the first launch is loaded now, so that the module's variables are known.
  if (info.function)
    driver.cuFuncLoad(info.function);
  kernels.findVariables(info);
  CUresult result = driver.cuCtxSynchronize();
  if (result != CUDA_SUCCESS) {
    why = "the GPU had failed before it: " + driver.message(result);
    return false;
  }

  std::vector<MemoryRange> ranges = allocations.all();
  ranges.insert(ranges.end(), foundByDriver.begin(), foundByDriver.end());
  for (size_t i = 0; i < info.variables.size(); ++i)
    ranges.push_back({info.variables[i].address, info.variables[i].what->bytes, int(i)});
  RangeIndex index(std::move(ranges));
  Reach reach(index, [this](uint64_t address, uint64_t bytes, char *into) { return copyOut(address, bytes, into); });
  for (size_t i = 0; i < index.all().size(); ++i)
    if (index.all()[i].variable >= 0)
      reach.addRange(i);
  const std::vector<ArgumentImage> &arguments = recorder.launch().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &bytes = arguments[i].bytes;
    uint64_t address;
    if (arguments[i].isPointer) {
      memcpy(&address, bytes.data(), 8);
      reach.addPointer(address);
    } else {
      reach.addWords(bytes.data(), bytes.size(), info.parameters[i].offset);
    }
  }
  if (!reach.follow(recorder.room())) {
    why = "memory that it may reach cannot be read";
    return false;
  }
  if (!recorder.admit(reach.bytes()))
    return false;
  windows = reach.windows();
  why = windows.size() > 65536 ? "it may reach more than 65536 buffers" : storeBefore(info);
  return why.empty();
}

/// Why it cannot, or "".
std::string Launches::storeBefore(const KernelInfo &info) {
  for (const MemoryRange &w : windows) {
    if (w.end() > uint64_t(1) << 47)
      return "it may reach memory at addresses above 2^47";
    if (!stage(w))
      return "a buffer of " + std::to_string(w.bytes) + " bytes cannot be copied";
    BufferImage b;
    b.address = w.begin;
    b.bytes = w.bytes;
    if (w.variable >= 0) {
      const CubinVariable &v = *info.variables[size_t(w.variable)].what;
      b.symbol = v.name;
      b.constant = v.constant;
      b.initial = v.isInitial(staging.get());
    }
    if (!recorder.addBuffer(std::move(b), staging.get()))
      return "a blob cannot be written";
  }
  for (const std::string &name : info.lostVariables)
    recorder.note(info.name + ": its module's variable " + name + " cannot be read and is not in the workload");
  recorder.linkArguments();
  return "";
}

void Launches::after(CUresult result) {
  std::unique_lock lock(mutex, std::adopt_lock);
  std::string why;
  if (result != CUDA_SUCCESS)
    why = "the launch failed: " + driver.message(result);
  else if (CUresult end = driver.cuCtxSynchronize(); end != CUDA_SUCCESS)
    why = "the kernel failed: " + driver.message(end);
  else
    why = storeAfter();
  if (!why.empty()) {
    recorder.abandon(why);
    return;
  }
  recorder.commit();
  recorder.write(); // so that what is there survives a program that is killed
}

std::string Launches::storeAfter() {
  for (size_t i = 0; i < windows.size(); ++i) {
    if (!stage(windows[i]))
      return "a buffer of " + std::to_string(windows[i].bytes) + " bytes cannot be copied after the launch";
    if (!recorder.setAfter(i, staging.get()))
      return "a blob cannot be written";
  }
  return "";
}

/// cuMemcpy finds out by itself whether the address is on a GPU, managed, or the host's.
bool Launches::copyOut(uint64_t address, uint64_t bytes, char *into) const {
  return driver.cuMemcpy(reinterpret_cast<CUdeviceptr>(into), address, bytes) == CUDA_SUCCESS;
}

/// Copies a window's content to `staging`.
bool Launches::stage(const MemoryRange &w) {
  if (w.bytes > stagingBytes) {
    staging.reset();
    staging.reset(new (std::nothrow) char[w.bytes]);
    stagingBytes = staging ? w.bytes : 0;
  }
  return staging && copyOut(w.begin, w.bytes, staging.get());
}

void Launches::finish() {
  // A launch that is being recorded by another thread, and does not end, has left a complete workload.json behind.
  std::unique_lock lock(mutex, std::chrono::seconds(10));
  if (!lock || ended)
    return;
  ended = true;
  if (recorder.good())
    recorder.write();
}

void Launches::seen(CUcontext context) {
  CUcontext none = nullptr;
  if (context && !current.compare_exchange_strong(none, context) && none != context)
    several = true;
}

size_t Launches::kernelsSeen() {
  std::unique_lock lock(mutex, std::chrono::seconds(1));
  return lock ? recorder.kernels() : 0;
}

bool Launches::hold() {
  std::unique_lock lock(mutex, std::chrono::seconds(1));
  if (!lock || ended || !capturedStreams.empty() || (recorder.good() && !recorder.write()))
    return false;
  ended = true; // what was recorded so far is the workload
  lock.release();
  return true;
}

void Launches::release() { mutex.unlock(); }
