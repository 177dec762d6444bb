//===- ReplayRun.cpp - running one replay job in this process -------------===//
#include "ReplayRun.h"
#include "Api.h"
#include "Coverage.h"
#include "Fault.h"
#include "Modules.h"
#include "Scheduler.h"
#include "Settings.h"
#include "Trace.h"
#include "Twins.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Workload.h"
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace optiml;
using namespace optiml::emu;
using Clock = std::chrono::steady_clock;

// For the ways out that do not return: a crash and the time limit.
static ReplayResult partial;
static std::string partialPath;
static FaultCollector collector;
static std::mutex ending; ///< never released: one result is written

static ReplayFault convert(const Fault &f) { return {f.kind, f.oneLine(), f.file, f.line, f.kernel}; }

[[noreturn]] static void endEarly(const ReplayFault &fault) {
  ending.lock();
  for (const Fault &f : collector.faults)
    partial.faults.push_back(convert(f));
  partial.faults.push_back(fault);
  partial.ok = false;
  std::string error;
  bool written = writeResult(partial, partialPath, error);
  if (!written)
    fprintf(stderr, "optiml-replay: error: %s\n", error.c_str());
  _exit(written ? 0 : 2);
}

namespace {

class Replay {
public:
  explicit Replay(const ReplayJob &job) : job(job) {}
  ReplayResult run();

private:
  bool fail(const std::string &why, const std::string &kernel = "") {
    result.faults.push_back({"launch", why, "", 0, kernel});
    return false;
  }
  bool loadModule();
  bool rebuildMemory();
  bool rebuildBuffer(unsigned index);
  bool runStep(const ReplayStep &step);
  bool marshal(const ReplayStep &step, const Kernel &kernel, std::vector<std::vector<char>> &values);
  bool writeOutputs();

  const ReplayJob &job;
  ReplayResult result;
  Workload workload;
  const LaunchImage *launch = nullptr;
  const ModuleDesc *module = nullptr;
  std::vector<Allocation *> buffers; ///< null: a variable that this module lacks
  std::vector<Allocation *> scratch;
  std::unordered_set<uint64_t> footprint;
  std::set<std::string> kernels; ///< that were launched
};

bool Replay::loadModule() {
  void *handle = dlopen(job.module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(std::string("cannot load the device module: ") + dlerror());
  module = static_cast<const ModuleDesc *>(dlsym(handle, "optiml_module"));
  if (!module)
    return fail("'" + job.module + "' is no device module: it exports no optiml_module");
  if (module->version != abiVersion)
    return fail("'" + job.module + "' was built for version " + std::to_string(module->version) +
                " of the emulator's runtime, this is " + std::to_string(abiVersion));
  Modules::get().add(module);
  return true;
}

bool Replay::rebuildBuffer(unsigned index) {
  const BufferImage &b = launch->buffers[index];
  auto input = job.inputs.find(index);
  std::string error;
  Allocation *a = nullptr;
  if (b.symbol.empty()) {
    a = Memory::get().restore(b.address, b.bytes, MemoryKind::Device, error);
    if (!a)
      return fail(error);
  } else {
    a = Modules::get().variableBySymbol(b.symbol);
    if (a && a->bytes != b.bytes)
      return fail("variable '" + b.symbol + "' has " + std::to_string(a->bytes) + " bytes in the module and " +
                  std::to_string(b.bytes) + " in the workload");
  }
  buffers.push_back(a);
  if (!a || (b.initial && input == job.inputs.end()))
    return true;
  const std::string &blob = input == job.inputs.end() ? b.before : input->second;
  // Some blocks touch few pages.
  auto load = (job.onlyBlocks.empty() && !job.tellsTouched) || !b.symbol.empty() ? readBlob : mapBlob;
  return load(workload.directory, blob, reinterpret_cast<void *>(a->address), b.bytes, error) || fail(error);
}

bool Replay::rebuildMemory() {
  std::string error;
  if (!Workload::read(job.workload, workload, error))
    return fail(error);
  if (job.launch >= workload.launches.size())
    return fail("the workload has " + std::to_string(workload.launches.size()) + " launches; launch " +
                std::to_string(job.launch) + " was asked for");
  launch = &workload.launches[job.launch];
  for (unsigned i = 0; i < launch->buffers.size(); ++i)
    if (!rebuildBuffer(i))
      return false;
  for (auto &[index, file] : job.inputs)
    if (index >= launch->buffers.size())
      return fail("input for buffer " + std::to_string(index) + ", but the launch has only " +
                  std::to_string(launch->buffers.size()));
  for (const ReplayScratch &s : job.scratch) {
    Allocation *a = Memory::get().allocate(std::max<uint64_t>(1, s.bytes), MemoryKind::Device, "scratch");
    if (!a)
      return fail("no room for " + std::to_string(s.bytes) + " bytes of scratch");
    if (s.zeroed)
      memset(reinterpret_cast<void *>(a->address), 0, a->bytes);
    scratch.push_back(a);
  }
  return true;
}

bool Replay::marshal(const ReplayStep &step, const Kernel &kernel, std::vector<std::vector<char>> &values) {
  const KernelDesc &k = *kernel.desc;
  if (step.arguments.size() != k.numParams)
    return fail("kernel " + step.kernel + " takes " + std::to_string(k.numParams) + " arguments, the step has " +
                    std::to_string(step.arguments.size()),
                step.kernel);
  for (uint32_t i = 0; i < k.numParams; ++i) {
    int source = step.arguments[i];
    std::vector<char> value(k.params[i].size);
    if (source < 0) {
      size_t s = size_t(-1 - source);
      if (s >= scratch.size() || value.size() != 8)
        return fail("argument " + std::to_string(i) + " of " + step.kernel + " names scratch that does not fit",
                    step.kernel);
      memcpy(value.data(), &scratch[s]->address, 8);
    } else {
      if (size_t(source) >= launch->arguments.size())
        return fail("argument " + std::to_string(i) + " of " + step.kernel + ": the captured launch has only " +
                        std::to_string(launch->arguments.size()) + " arguments",
                    step.kernel);
      const ArgumentImage &a = launch->arguments[size_t(source)];
      if (a.bytes.size() != value.size())
        return fail("argument " + std::to_string(i) + " of " + step.kernel + " has " + std::to_string(value.size()) +
                        " bytes, the captured one has " + std::to_string(a.bytes.size()),
                    step.kernel);
      memcpy(value.data(), a.bytes.data(), value.size());
      if (a.isPointer && a.buffer >= 0 && buffers[size_t(a.buffer)]) {
        uint64_t address = buffers[size_t(a.buffer)]->address + a.offset;
        memcpy(value.data(), &address, 8);
      }
    }
    values.push_back(std::move(value));
  }
  return true;
}

bool Replay::runStep(const ReplayStep &step) {
  Kernel *kernel = Modules::get().kernelBySymbol(step.kernel);
  if (!kernel)
    return fail("the module has no kernel " + step.kernel, step.kernel);
  kernels.insert(kernel->desc->symbol);
  std::vector<std::vector<char>> values;
  if (!marshal(step, *kernel, values))
    return false;
  uint64_t threads = uint64_t(step.block[0]) * step.block[1] * step.block[2];
  if (threads > 1024 || step.block[2] > 64 || step.grid[1] > Device::maxBlocksOnYZ ||
      step.grid[2] > Device::maxBlocksOnYZ)
    return fail("the launch of " + step.kernel + " exceeds the device's limits on grid or block", step.kernel);
  if (kernel->desc->maxThreads && threads > kernel->desc->maxThreads)
    return fail("the launch of " + step.kernel + " exceeds its __launch_bounds__", step.kernel);
  uint64_t own = 0;
  for (uint32_t i = 0; i < kernel->desc->numSharedVars; ++i)
    own += kernel->desc->sharedVars[i].size;
  if (own + step.sharedBytes > Device::sharedPerBlockOptin)
    return fail("the launch of " + step.kernel + " needs " + std::to_string(own + step.sharedBytes) +
                    " bytes of shared memory, more than the device has",
                step.kernel);
  Launch l;
  l.kernel = kernel->desc;
  l.module = kernel->module;
  l.grid = step.grid;
  l.block = step.block;
  l.dynamicShared = step.sharedBytes;
  l.orderSeed = job.orderSeed;
  std::vector<void *> args;
  for (auto &v : values)
    args.push_back(v.data());
  l.args = args.data();
  TraceCollector trace;
  if (module->mode & ModeTrace) {
    trace.l1Bytes = job.l1Bytes;
    trace.footprint = &footprint;
    l.trace = &trace;
  }
  uint64_t total = uint64_t(step.grid[0]) * step.grid[1] * step.grid[2];
  for (uint32_t b : job.onlyBlocks) // a plan's steps have different grids
    if (b < total)
      l.onlyBlocks.push_back(b);
  if (job.beginSeconds > 0)
    l.beginBy =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(job.beginSeconds));
  std::string error;
  bool ran = runLaunch(l, job.workers, error);
  result.begun = l.begun;
  if (!ran)
    return l.stop ? false : fail(error, step.kernel);
  if (l.trace) {
    trace.finish(l);
    result.traces.push_back(std::move(trace.result));
  }
  return true;
}

/// One record of b<i>.shadow.
struct ShadowRecord {
  uint64_t offset;
  uint32_t bytes, additions;
  double value, magnitude;
};
static_assert(sizeof(ShadowRecord) == 32);

bool Replay::writeOutputs() {
  std::string error;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Allocation *a = buffers[i];
    if (!a || (job.numbersOnly && !a->twins2.cells && !a->twins4.cells))
      continue;
    std::string name = "b" + std::to_string(i);
    std::string path = job.outputDir + "/" + name;
    std::vector<ShadowRecord> records;
    std::string numbers;
    if (module->mode & ModeShadow)
      forEachTwin(*a, 0, a->bytes, [&](uint64_t offset, const TwinCell &c) {
        records.push_back({offset, c.bytes, c.additions, c.value, c.magnitude});
        if (job.numbersOnly)
          numbers.append(reinterpret_cast<const char *>(a->address + offset), c.bytes);
      });
    unlink((path + ".bin").c_str());
    const void *content = job.numbersOnly ? numbers.data() : reinterpret_cast<void *>(a->address);
    if (!writeBlob(job.outputDir, name + ".bin", content, job.numbersOnly ? numbers.size() : a->bytes, error))
      return fail(error);
    if (!(module->mode & ModeShadow))
      continue;
    unlink((path + ".shadow").c_str());
    if (!writeBlob(job.outputDir, name + ".shadow", records.data(), records.size() * sizeof(ShadowRecord), error))
      return fail(error);
  }
  return true;
}

ReplayResult Replay::run() {
  faultCollector = &collector;
  bool ok = loadModule() && rebuildMemory();
  auto begin = Clock::now();
  for (const ReplayStep &step : job.steps)
    ok = ok && runStep(step);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  ok = ok && (job.outputDir.empty() || writeOutputs());
  if (module && module->numCode) {
    // A function that the original calls too is the original's own code.
    std::set<uint64_t> known;
    for (uint32_t i = 0; launch && i < module->numCode; ++i)
      if (launch->kernel == module->code[i].kernel && !kernels.count(launch->kernel))
        known.insert(module->code[i].functionHash);
    for (MissedCode &m : missedCode(*module, kernels))
      if (!known.count(m.functionHash))
        result.missed.push_back(std::move(m));
    result.ran.assign(kernels.begin(), kernels.end());
    result.dataDecides = std::any_of(kernels.begin(), kernels.end(), [](const std::string &symbol) {
      return Modules::get().kernelBySymbol(symbol)->desc->dataDecides;
    });
  }
  if (job.tellsTouched)
    for (const Allocation *a : buffers)
      result.touched.push_back(a ? a->touched.load() : 0);
  std::lock_guard lock(collector.mutex);
  for (const Fault &f : collector.faults)
    result.faults.push_back(convert(f));
  result.ok = ok;
  return std::move(result);
}

} // namespace

ReplayResult optiml::emu::runReplay(const ReplayJob &job, const std::string &resultPath) {
  partialPath = resultPath;
  settings().notesTouched = job.tellsTouched;
  settings().memoryBytes = UINT64_MAX / 2; // limits on memory are imposed from outside
  installCrashHandler();
  replayCrashed = [](const Fault &f) { endEarly(convert(f)); };
  if (job.seconds > 0)
    std::thread([seconds = job.seconds, kernel = job.steps.empty() ? "" : job.steps.front().kernel] {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      partial.seconds = seconds;
      endEarly({"timeout", "the replay ran longer than " + std::to_string(seconds) + " s", "", 0, kernel});
    }).detach();
  ReplayResult result = Replay(job).run();
  ending.lock();
  return result;
}
