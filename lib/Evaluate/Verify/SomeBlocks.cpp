//===- SomeBlocks.cpp - launches of which some blocks run -----------------===//
//
// What is too large to run on the emulator as a whole: a few blocks look for races and accesses out of bounds, and
// reach code that no smaller launch does.
//
//===----------------------------------------------------------------------===//
#include "BlockSample.h"
#include "VerifierImpl.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>
#include <future>

using namespace optiml;
using emu::ReplayFault;

llvm::Expected<bool> Verifier::Impl::agreesWhereItWrote(const ReplayRun &run, const Target &t, ReferenceCase &c) {
  const LaunchImage &launch = workloads[t.workload].launches[t.launch];
  for (unsigned i = 0; i < c.buffers.size(); ++i) {
    std::string file = run.outputDir + "/b" + std::to_string(i) + ".bin";
    if (!c.present[i] || !llvm::sys::fs::exists(file))
      continue;
    llvm::Expected<std::string> bytes = readFile(file), input = inputOf(c, launch, t.workload, i);
    if (!bytes || !input)
      return llvm::joinErrors(bytes.takeError(), input.takeError());
    const BufferReference &reference = c.buffers[i];
    size_t cell = std::max(1u, reference.element.bytes), end = std::min(bytes->size(), reference.bytes.size());
    for (size_t at = 0; at < end && input->size() == bytes->size(); at += cell)
      if (size_t size = std::min(cell, end - at); memcmp(&(*bytes)[at], &(*input)[at], size) == 0)
        memcpy(&(*bytes)[at], &reference.bytes[at], size);
    if (compareBuffer(reference, *bytes, options.floats))
      return false;
  }
  return true;
}

llvm::Expected<bool> Verifier::Impl::checkFaults(const emu::ReplayResult &ran, const Target &t,
                                                 const std::vector<uint32_t> &blocks, VerifyReport &report) {
  auto counts = [](const ReplayFault &f) { return f.kind != "benign-race"; };
  // Of several steps, the later ones find scratch memory that only some blocks filled.
  if (t.plan.steps.size() != 1 || llvm::none_of(ran.faults, counts))
    return true;
  const LaunchImage &launch = workloads[t.workload].launches[t.launch];
  const ReferenceCase captured;
  llvm::Expected<ReplayRun> own = replay(verifyModule, t.workload, t.launch, captured,
                                         identityPlan(launch, launch.kernel), 0, options.raceSeconds, blocks, false);
  if (!own)
    return own.takeError();
  llvm::sys::fs::remove_directories(own->outputDir);
  for (const ReplayFault &f : ran.faults) {
    if (!counts(f) || llvm::any_of(own->result.faults, [&](const ReplayFault &known) { return known.kind == f.kind; }))
      continue;
    return refuse(report, f, "some blocks of launch " + std::to_string(launch.sequence));
  }
  return true;
}

// More blocks than that are too many to be named one by one.
static constexpr uint64_t mostBlocks = 1 << 20;

llvm::Expected<bool> Verifier::Impl::checkAll(Changed &changed, const Target &t, double seconds, VerifyReport &report,
                                              Coverage &covered) {
  const uint64_t blocks = blocksOf(t.plan.steps.front().grid), parts = std::max(1u, options.jobs);
  // Of several steps, the later ones would find scratch memory that other parts fill.
  if (!options.comparedElsewhere || t.plan.steps.size() != 1 || blocks > mostBlocks ||
      !(seconds * double(blocks) / double(parts) < options.raceSeconds))
    return true;
  std::vector<std::vector<uint32_t>> shares(parts);
  for (uint32_t block = 0; block < blocks; ++block)
    shares[block % parts].push_back(block);
  std::vector<std::future<llvm::Expected<ReplayRun>>> runs;
  for (const std::vector<uint32_t> &share : shares)
    runs.push_back(std::async(std::launch::async, [&] {
      return replay(changed.verifyModule, t.workload, t.launch, ReferenceCase(), t.plan, 0, options.raceSeconds, share,
                    /*writes=*/false);
    }));
  llvm::Expected<bool> good = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    llvm::Expected<ReplayRun> run = runs[i].get();
    if (!run) {
      good = llvm::joinErrors(good.takeError(), run.takeError());
      continue;
    }
    llvm::sys::fs::remove_directories(run->outputDir);
    if (!run->result.ok || !good || !*good)
      continue;
    Coverage probe = covered;
    if (probe.addRun({run->result.ran.begin(), run->result.ran.end()}, run->result.missed))
      covered = std::move(probe);
    good = checkFaults(run->result, t, shares[i], report);
  }
  return good;
}

llvm::Expected<bool> Verifier::Impl::checkSome(Changed &changed, const Target &t, uint64_t most, VerifyReport &report,
                                               Coverage &covered, double &blockSeconds) {
  const ReferenceCase captured; // with its own inputs
  std::vector<uint32_t> blocks = closeBlocks(t.plan.steps.front().grid, most);
  bool compares = !options.comparedElsewhere;
  llvm::Expected<ReplayRun> run =
      replay(changed.verifyModule, t.workload, t.launch, captured, t.plan, 0, options.raceSeconds, blocks, compares);
  if (!run)
    return run.takeError();
  auto done = llvm::scope_exit([&] { llvm::sys::fs::remove_directories(run->outputDir); });
  blockSeconds = HUGE_VAL;
  if (!run->result.ok)
    return true; // it takes too long
  const uint64_t all = blocksOf(t.plan.steps.front().grid);
  blockSeconds = run->result.seconds / double(blocks.empty() ? all : blocks.size());
  Coverage probe = covered;
  const bool tellsMore = probe.addRun({run->result.ran.begin(), run->result.ran.end()}, run->result.missed);
  if (!compares) {
    if (tellsMore)
      covered = std::move(probe);
    return checkFaults(run->result, t, blocks, report);
  }
  if (!tellsMore)
    return true;
  ReferenceCase &c = caseOf(t.workload, t.launch, 0);
  if (llvm::Error e = prepare(c, t.workload, t.launch, 0))
    return std::move(e);
  if (!c.unusable.empty()) {
    report.notes.push_back(c.name + " is left out: " + c.unusable);
    return true;
  }
  ++report.runs;
  bool faulty = llvm::any_of(
      run->result.faults, [&](const ReplayFault &f) { return f.kind != "benign-race" && !c.faultKinds.count(f.kind); });
  llvm::Expected<bool> agrees = !faulty && t.plan.steps.size() == 1 ? agreesWhereItWrote(*run, t, c) : false;
  if (!agrees)
    return agrees.takeError();
  if (*agrees) {
    covered = std::move(probe);
    return true;
  }
  // Perhaps other blocks, which did not run, take part in these cells.
  if (llvm::Error e = buildBounds(changed))
    return std::move(e);
  double limit = std::min(options.seconds, std::max(5.0, 10 * c.boundsSeconds + 2));
  return checkRun(changed.boundsModule, t, c, 0, limit, report, covered);
}

llvm::Error Verifier::Impl::checkLargeAlone(Changed &changed, const std::vector<Target> &largeTargets,
                                            VerifyReport &report) {
  Coverage covered;
  for (const Target &t : largeTargets) {
    double seconds = 0;
    llvm::Expected<bool> good = checkSome(changed, t, fewBlocks, report, covered, seconds);
    if (!good || !*good)
      return good.takeError();
  }
  report.notes.push_back("of kernels that are written for the sizes of large launches, only some blocks ran on the "
                         "emulator: for races and accesses out of bounds");
  return llvm::Error::success();
}
