//===- Launches.cpp - captured launches on the GPU ------------------------===//
#include "Launches.h"
#include "optiml/Workload/Blob.h"
#include <algorithm>
#include <cstring>
#include <numeric>

using namespace optiml;
using namespace optiml::gpu;

static constexpr uint64_t redZoneReach = 64 << 10;

CUdeviceptr Launches::blob(const std::string &name, uint64_t bytes) {
  auto it = blobs.find(name);
  if (it != blobs.end())
    return it->second;
  std::unique_ptr<char[]> data(new char[bytes]);
  std::string error;
  if (!readBlob(images.directory, name, data.get(), bytes, error)) {
    device.fail(error);
    return 0;
  }
  patched += arenas.patch(data.get(), bytes);
  CUdeviceptr at = device.allocate(bytes, "no room for the captured buffers");
  if (!at || !device.upload(at, data.get(), bytes))
    return 0;
  return blobs[name] = at;
}

/// Copies of the captured contents; working copies where the launch had them.
bool Launches::fillBuffers(DeviceLaunch &state) {
  for (const BufferImage &b : state.image->buffers) {
    DeviceBuffer buffer;
    buffer.at = b.symbol.empty() ? arenas.translate(b.address) : 0;
    buffer.captured = blob(b.before, b.bytes);
    if (!buffer.captured)
      return false;
    state.buffers.push_back(buffer);
  }
  return true;
}

bool Launches::loadExact(const std::string &directory, unsigned launch) {
  std::string error;
  if (!Workload::read(directory, images, error))
    return device.fail(error);
  if (launch >= images.launches.size())
    return device.fail("the workload has only " + std::to_string(images.launches.size()) + " launches");
  states.resize(images.launches.size());
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].image = &images.launches[i];
    states[i].unusable = i == launch ? "" : "it was not asked for";
  }
  DeviceLaunch &state = states[launch];
  std::vector<bool> direct(state.image->buffers.size());
  for (const ArgumentImage &a : state.image->arguments)
    if (a.isPointer && a.buffer >= 0)
      direct[size_t(a.buffer)] = true;
  for (size_t i = 0; i < direct.size(); ++i) {
    const BufferImage &b = state.image->buffers[i];
    if (!direct[i] && b.symbol.empty())
      return device.fail("it reaches buffers through pointers in memory, which hold only at their old addresses");
  }
  if (!fillBuffers(state))
    return false;
  for (size_t i = 0; i < state.buffers.size(); ++i) {
    const BufferImage &b = state.image->buffers[i];
    if (b.symbol.empty() && !(state.buffers[i].at = device.allocate(b.bytes, "no room for the captured buffers")))
      return false;
  }
  return true;
}

bool Launches::putInPlace(const Run &run) {
  const DeviceLaunch &launch = *run.launch;
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    const BufferImage &b = launch.image->buffers[i];
    CUdeviceptr to = b.initial ? 0 : address(run, i);
    if (to && !device.copy(to, launch.buffers[i].captured, b.bytes))
      return false;
  }
  return device.finish();
}

bool Launches::load(const std::string &directory) {
  std::string error;
  if (!Workload::read(directory, images, error))
    return device.fail(error);
  // A third of the memory for working copies leaves room for the captured contents, references and the checks.
  size_t free = 0, total = 0;
  if (!device.ok(device.cu.cuMemGetInfo(&free, &total), "cannot learn how much memory is free"))
    return false;
  std::vector<AddressRange> ranges;
  states.resize(images.launches.size());
  auto sizeOf = [](std::vector<AddressRange> r) {
    uint64_t bytes = 0;
    for (const AddressRange &j : joinRanges(std::move(r), 2 << 20))
      bytes += j.bytes;
    return bytes;
  };
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].image = &images.launches[i];
    std::vector<AddressRange> with = ranges;
    for (const BufferImage &b : images.launches[i].buffers)
      if (b.symbol.empty())
        with.push_back({b.address, b.bytes});
    if (uint64_t needed = sizeOf(with); needed > free / 3) {
      states[i].unusable = "its buffers do not fit into the GPU's memory (" + std::to_string(free >> 20) +
                           " MiB are free; working copies may take a third)";
      continue;
    }
    ranges = std::move(with);
  }
  if (!arenas.map(device, ranges))
    return false;
  for (DeviceLaunch &state : states) {
    if (!state.unusable.empty())
      continue;
    if (!fillBuffers(state))
      state.unusable = device.error;
    std::vector<AddressRange> used;
    for (const BufferImage &b : state.image->buffers)
      if (b.symbol.empty())
        used.push_back({b.address, b.bytes});
    for (const AddressRange &arena : arenas.ranges())
      for (const AddressRange &gap : gapsOf(arena, used, redZoneReach))
        state.redZones.push_back({arenas.translate(gap.begin), gap.bytes});
  }
  if (patched)
    remarks.push_back(std::to_string(arenas.relocated) + " of " + std::to_string(arenas.ranges().size()) +
                      " address ranges lie elsewhere than in the program; " + std::to_string(patched) +
                      " words of the captured data that look like pointers into them were adjusted");
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].unusable.empty())
      return true;
  return device.fail(states.empty() ? "the workload holds no launch" : states.front().unusable);
}

bool Launches::marshal(const DeviceLaunch &launch, const emu::ReplayStep &step, Run &into, Run::Step &made) {
  const std::vector<ArgumentImage> &captured = launch.image->arguments;
  if (step.arguments.size() != made.kernel->parameters.size())
    return device.fail("kernel " + step.kernel + " takes " + std::to_string(made.kernel->parameters.size()) +
                       " arguments, the plan has " + std::to_string(step.arguments.size()));
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    int source = step.arguments[i];
    std::vector<char> value(made.kernel->parameters[i]);
    if (source < 0) {
      size_t s = size_t(-1 - source);
      if (s >= into.scratch.size() || value.size() != 8)
        return device.fail("argument " + std::to_string(i) + " of " + step.kernel + " names scratch that does not fit");
      memcpy(value.data(), &into.scratch[s], 8);
    } else {
      if (size_t(source) >= captured.size() || captured[size_t(source)].bytes.size() != value.size())
        return device.fail("argument " + std::to_string(i) + " of " + step.kernel + " has " +
                           std::to_string(value.size()) + " bytes, unlike the captured one");
      const ArgumentImage &a = captured[size_t(source)];
      memcpy(value.data(), a.bytes.data(), value.size());
      if (!a.isPointer)
        arenas.patch(value.data(), value.size());
      if (a.isPointer && a.buffer >= 0 && value.size() == 8) {
        CUdeviceptr at = address(into, unsigned(a.buffer)) + a.offset;
        memcpy(value.data(), &at, 8);
      }
    }
    made.values.push_back(std::move(value));
  }
  return true;
}

CUdeviceptr Launches::scratch(size_t index, uint64_t bytes) {
  if (scratchMemory.size() <= index)
    scratchMemory.resize(index + 1);
  auto &[at, size] = scratchMemory[index];
  if (size < bytes) { // a smaller one may still be in use by another run
    at = device.allocate(bytes, "no room for scratch memory");
    size = at ? bytes : 0;
  }
  return at;
}

bool Launches::fits(const Run::Step &step, const std::string &name, Failure &failure) {
  failure = Failure::OverLimit;
  Module::Kernel &k = *step.kernel;
  uint64_t threads = uint64_t(step.block[0]) * step.block[1] * step.block[2];
  if (threads > k.maxThreads)
    return device.fail("a block of " + std::to_string(threads) + " threads is more than kernel " + name +
                       " can be launched with (" + std::to_string(k.maxThreads) + ")");
  if (step.sharedBytes > k.dynamicAllowed) {
    std::string what = "kernel " + name + " asks for " + std::to_string(step.sharedBytes + k.staticShared) +
                       " bytes of shared memory, more than a block may have";
    if (!device.ok(device.cu.cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                int(step.sharedBytes)),
                   what.c_str()))
      return false;
    k.dynamicAllowed = step.sharedBytes;
  }
  failure = Failure::None;
  return true;
}

bool Launches::plan(const PlannedLaunch &planned, Module &module, Run &into, Failure &failure) {
  failure = Failure::Runtime;
  if (planned.launch >= states.size() || !states[planned.launch].unusable.empty())
    return device.fail("launch " + std::to_string(planned.launch) + " cannot be replayed");
  into.module = &module;
  into.launch = &states[planned.launch];
  for (size_t i = 0; i < planned.scratch.size(); ++i) {
    into.scratch.push_back(scratch(i, planned.scratch[i].bytes));
    into.scratchBytes.push_back(planned.scratch[i].bytes);
    into.scratchZeroed.push_back(planned.scratch[i].zeroed);
    if (!into.scratch.back()) {
      failure = Failure::OverLimit;
      return false;
    }
  }
  for (const emu::ReplayStep &step : planned.steps) {
    Run::Step made{module.kernel(step.kernel), step.grid, step.block, step.sharedBytes, {}};
    if (!made.kernel || !marshal(*into.launch, step, into, made) || !fits(made, step.kernel, failure))
      return false;
    into.steps.push_back(std::move(made));
  }
  failure = Failure::None;
  return true;
}

bool Launches::planOriginal(unsigned launch, Module &module, Run &into) {
  PlannedLaunch planned;
  planned.launch = launch;
  const LaunchImage &image = images.launches[launch];
  emu::ReplayStep step;
  step.kernel = image.kernel;
  step.grid = image.grid;
  step.block = image.block;
  step.sharedBytes = image.sharedBytes;
  step.arguments.resize(image.arguments.size());
  std::iota(step.arguments.begin(), step.arguments.end(), 0);
  planned.steps.push_back(std::move(step));
  Failure failure;
  return plan(planned, module, into, failure);
}

CUdeviceptr Launches::address(const Run &run, unsigned buffer) const {
  const BufferImage &image = run.launch->image->buffers[buffer];
  return image.symbol.empty() ? run.launch->buffers[buffer].at : run.module->variable(image.symbol, image.bytes);
}

bool Launches::enqueue(const Run &run, Failure &failure) {
  failure = Failure::Runtime;
  for (size_t i = 0; i < run.scratch.size(); ++i)
    if (run.scratchZeroed[i] && !device.fill(run.scratch[i], 0, run.scratchBytes[i]))
      return false;
  for (const Run::Step &step : run.steps) {
    std::vector<void *> arguments;
    for (const std::vector<char> &value : step.values)
      arguments.push_back(const_cast<char *>(value.data()));
    CUresult result = device.cu.cuLaunchKernel(step.kernel->function, step.grid[0], step.grid[1], step.grid[2],
                                               step.block[0], step.block[1], step.block[2], step.sharedBytes,
                                               device.stream, arguments.data(), nullptr);
    if (!device.ok(result, "the kernel cannot be launched")) {
      if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
          result == CUDA_ERROR_OUT_OF_MEMORY)
        failure = Failure::OverLimit;
      return false;
    }
  }
  failure = Failure::None;
  return true;
}
