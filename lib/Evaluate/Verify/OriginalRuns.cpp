//===- OriginalRuns.cpp - the original's results --------------------------===//
#include "BlockSample.h"
#include "ReplayProcess.h"
#include "VerifierImpl.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Blob.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <future>

using namespace optiml;
using emu::ReplayFault;

std::string Verifier::Impl::scratchDir() {
  std::string path = dir.file("run" + std::to_string(counter++));
  llvm::sys::fs::create_directory(path);
  return path;
}

ReferenceCase &Verifier::Impl::caseOf(unsigned workload, unsigned launch, unsigned input) {
  std::lock_guard lock(casesMutex);
  std::unique_ptr<ReferenceCase> &c = cases[{workload, launch, input}];
  if (!c)
    c = std::make_unique<ReferenceCase>();
  return *c;
}

llvm::Expected<ReplayRun> Verifier::Impl::replay(const std::string &module, unsigned workload, unsigned launch,
                                                 const ReferenceCase &inputs, const ConcretePlan &plan,
                                                 uint64_t orderSeed, double seconds, std::vector<uint32_t> onlyBlocks,
                                                 bool writes) {
  ReplayRun run;
  run.outputDir = scratchDir();
  emu::ReplayJob job = replayJob(module, workloads[workload].directory, launch, plan);
  job.inputs = inputs.inputs;
  if (writes)
    job.outputDir = run.outputDir;
  job.orderSeed = orderSeed;
  job.seconds = seconds;
  job.onlyBlocks = std::move(onlyBlocks);
  std::string error;
  // The replay keeps to its limit itself; the other one is for one that cannot.
  llvm::Expected<ProcessResult> child = runReplay(options, job, run.outputDir, seconds + 10);
  if (!child)
    return child.takeError();
  if (child->cancelled)
    return makeError("verification was cancelled");
  std::string kernel = plan.steps.empty() ? "" : plan.steps.front().kernel;
  if (child->ok() && readResult(run.outputDir + "/result.json", run.result, error))
    return run;
  run.result.ok = false;
  if (child->timedOut)
    run.result.faults = {{"timeout", "the replay " + child->describe(), "", 0, kernel}};
  else if (child->overMemory)
    run.result.faults = {{"memory", "the replay " + child->describe(), "", 0, kernel}};
  else if (child->signal)
    run.result.faults = {{"crash", "the replay was " + child->describe(), "", 0, kernel}};
  else
    return makeError("optiml-replay failed ({0}): {1}{2}", child->describe(), child->err, error);
  return run;
}

static std::string oneLine(const std::vector<ReplayFault> &faults) {
  return faults.empty() ? "no reason was given" : faults.front().message;
}

llvm::Error Verifier::Impl::runOriginal(ReferenceCase &c, unsigned w, unsigned l) {
  const LaunchImage &launch = workloads[w].launches[l];
  ConcretePlan plan = identityPlan(launch, launch.kernel);
  c.faultKinds.clear();
  c.faults.clear();
  double affordable =
      options.affordableSeconds > 0 ? std::min(options.affordableSeconds, options.seconds) : options.seconds;
  llvm::Expected<ReplayRun> bounds = replay(boundsModule, w, l, c, plan, 0, affordable);
  if (!bounds)
    return bounds.takeError();
  bool timedOut = !bounds->result.faults.empty() && bounds->result.faults[0].kind == "timeout";
  c.unaffordable = options.affordableSeconds > 0 && (timedOut || bounds->result.seconds > options.affordableSeconds);
  if (c.unaffordable) {
    c.unusable = llvm::formatv("it takes longer than {0:f1} s on the CPU emulator", affordable).str();
    return llvm::Error::success();
  }
  if (!bounds->result.ok) {
    c.unusable = "the original fails on it: " + oneLine(bounds->result.faults);
    return llvm::Error::success();
  }
  c.boundsSeconds = bounds->result.seconds;
  c.isLong = c.boundsSeconds > options.longSeconds;
  c.blocks = c.isLong ? closeBlocks(launch.grid) : std::vector<uint32_t>();
  // Child processes: beside each other where they take long, and one after the other where times may be compared with
  // limits.
  auto how = c.isLong ? std::launch::async : std::launch::deferred;
  auto shadowRun = std::async(how, [&] { return replay(shadowModule, w, l, c, plan, 0, options.seconds, c.blocks); });
  // Races of the original, within the time that race checks may take.
  double raceLimit = std::min(options.seconds, options.raceSeconds);
  auto raceRun = std::async(how, [&] { return replay(verifyModule, w, l, c, plan, 0, raceLimit, c.blocks); });
  llvm::Expected<ReplayRun> shadow = shadowRun.get(), races = raceRun.get();
  if (!shadow || !races)
    return llvm::joinErrors(shadow.takeError(), races.takeError());
  if (llvm::Error e = readReference(c, launch, w, *bounds, *shadow))
    return e;
  bool sampled = !c.blocks.empty() && shadow->result.ok;
  if (sampled && !std::all_of(c.buffers.begin(), c.buffers.end(),
                              [](const BufferReference &r) { return r.sampled || r.bytes.empty(); })) {
    llvm::sys::fs::remove_directories(shadow->outputDir); // blocks work on the same cells: all of them, then
    shadow = replay(shadowModule, w, l, c, plan, 0, options.seconds);
    if (!shadow)
      return shadow.takeError();
    c.blocks.clear();
    if (llvm::Error e = readReference(c, launch, w, *bounds, *shadow))
      return e;
  }
  llvm::Expected<bool> onlyFloats = c.isLong ? changesOnlyFloats(c, launch, w) : llvm::Expected<bool>(false);
  if (!onlyFloats)
    return onlyFloats.takeError();
  if (!*onlyFloats)
    if (llvm::Error e = markUnstable(c, w, l, plan, shadow->result.ok))
      return e;
  {
    std::lock_guard lock(coverageMutex);
    originalCoverageKnown &= races->result.ok;
    originalCovered.addRun({races->result.ran.begin(), races->result.ran.end()}, races->result.missed);
  }
  c.verifySeconds = races->result.seconds;
  c.raceChecked = true;
  for (const ReplayFault &f : races->result.faults) {
    if (f.kind == "timeout" || f.kind == "memory") {
      c.raceChecked = false;
      continue;
    }
    c.faultKinds.insert(f.kind);
    c.faults.push_back(f);
  }
  for (auto *run : {&*bounds, &*shadow, &*races})
    llvm::sys::fs::remove_directories(run->outputDir);
  return llvm::Error::success();
}

llvm::Expected<std::string> Verifier::Impl::inputOf(const ReferenceCase &c, const LaunchImage &launch, unsigned w,
                                                    unsigned buffer) const {
  auto input = c.inputs.find(buffer);
  if (launch.buffers[buffer].initial && input == c.inputs.end())
    return std::string(); // as the module has it
  std::string bytes(launch.buffers[buffer].bytes, '\0'), error;
  const std::string &blob = input == c.inputs.end() ? launch.buffers[buffer].before : input->second;
  if (!readBlob(workloads[w].directory, blob, bytes.data(), bytes.size(), error))
    return makeError(error);
  return bytes;
}

llvm::Error Verifier::Impl::readReference(ReferenceCase &c, const LaunchImage &launch, unsigned w,
                                          const ReplayRun &bounds, const ReplayRun &shadow) {
  std::vector<ElementType> types = bufferTypes(launch);
  c.buffers.clear();
  c.present.clear();
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    BufferReference r;
    r.name = bufferName(launch, i);
    r.element = types[i];
    r.synthetic = !c.inputs.empty();
    std::string file = "/b" + std::to_string(i);
    // A variable that the module lacks has no output.
    c.present.push_back(llvm::sys::fs::exists(bounds.outputDir + file + ".bin"));
    if (c.present.back()) {
      if (llvm::Error error = readFile(bounds.outputDir + file + ".bin").moveInto(r.bytes))
        return error;
      if (shadow.result.ok) {
        llvm::Expected<std::string> cells = readFile(shadow.outputDir + file + ".shadow");
        if (!cells)
          return cells.takeError();
        if (c.blocks.empty()) {
          r.setCells(*cells);
        } else {
          llvm::Expected<std::string> left = readFile(shadow.outputDir + file + ".bin");
          if (!left)
            return left.takeError();
          llvm::Expected<std::string> input = inputOf(c, launch, w, i);
          if (!input)
            return input.takeError();
          r.setSampledCells(*cells, *input, *left);
        }
      }
    }
    c.buffers.push_back(std::move(r));
  }
  return llvm::Error::success();
}

llvm::Error Verifier::Impl::markUnstable(ReferenceCase &c, unsigned w, unsigned l, const ConcretePlan &plan,
                                         bool cellsKnown) {
  llvm::Expected<ReplayRun> other = replay(boundsModule, w, l, c, plan, options.seed + 17, options.seconds);
  if (!other)
    return other.takeError();
  for (unsigned i = 0; i < c.buffers.size() && other->result.ok; ++i) {
    BufferReference &r = c.buffers[i];
    // Numbers whose double-precision value is not known would not be compared at all.
    bool numbers = r.element.isFloating();
    if (!c.present[i] || (numbers && (r.sampled || !cellsKnown)))
      continue;
    llvm::Expected<std::string> again = readFile(other->outputDir + "/b" + std::to_string(i) + ".bin");
    if (!again)
      return again.takeError();
    r.markUnstable(*again);
  }
  llvm::sys::fs::remove_directories(other->outputDir);
  return llvm::Error::success();
}

llvm::Expected<bool> Verifier::Impl::changesOnlyFloats(const ReferenceCase &c, const LaunchImage &launch,
                                                       unsigned w) const {
  for (unsigned i = 0; i < c.buffers.size(); ++i) {
    const BufferReference &r = c.buffers[i];
    bool numbers = r.element.isFloating();
    if (!c.present[i] || (numbers && r.sampled))
      continue;
    llvm::Expected<std::string> input = inputOf(c, launch, w, i);
    if (!input)
      return input.takeError();
    if (*input != r.bytes)
      return false;
  }
  return true;
}

llvm::Error Verifier::Impl::prepare(ReferenceCase &c, unsigned w, unsigned l, unsigned input) {
  std::lock_guard lock(c.mutex);
  if (c.ready)
    return llvm::Error::success();
  const LaunchImage &launch = workloads[w].launches[l];
  std::string where = "launch " + std::to_string(launch.sequence);
  std::string program;
  for (const std::string &a : workloads[w].programArguments)
    program += " " + a;
  if (!program.empty())
    where += " (program arguments:" + program + ")";
  const bool wide = input >= firstWide, masked = !wide && input >= firstMasked;
  c.name = wide     ? "far-out input " + std::to_string(input - firstWide + 1) + " of " + where
           : masked ? "masked input " + std::to_string(input - firstMasked + 1) + " of " + where
           : input  ? "random input " + std::to_string(input) + " of " + where
                    : "captured " + where;
  if (!input) {
    if (llvm::Error e = runOriginal(c, w, l))
      return e;
    c.ready = true;
    return llvm::Error::success();
  }
  // Other integers may send the original out of bounds (indices, offsets): then they change less. What a mask is among
  // numbers, the least one is among integers.
  using Kinds = std::vector<FreshIntegers>;
  for (FreshIntegers integers : masked ? Kinds{FreshIntegers::Extreme, FreshIntegers::Keep}
                                       : Kinds{FreshIntegers::Random, FreshIntegers::Shuffle, FreshIntegers::Keep}) {
    std::string folder = scratchDir();
    auto fresh = freshInputs(workloads[w], launch, options.seed + input, integers, folder,
                             wide     ? FloatRange::Wide
                             : masked ? FloatRange::Masked
                                      : FloatRange::Same);
    if (!fresh)
      return fresh.takeError();
    if (fresh->empty()) {
      c.unusable = "nothing in its buffers is known to be a number";
      continue;
    }
    c.inputs = std::move(*fresh);
    c.unusable.clear();
    if (llvm::Error e = runOriginal(c, w, l))
      return e;
    bool bad = !c.unusable.empty();
    ReferenceCase &captured = caseOf(w, l, 0);
    for (const std::string &kind : c.faultKinds)
      if (!captured.faultKinds.count(kind)) {
        bad = true; // an input that breaks the original proves nothing
        c.unusable = "the original fails on it: " + oneLine(c.faults);
      }
    if (!bad)
      break;
  }
  c.ready = true;
  return llvm::Error::success();
}
