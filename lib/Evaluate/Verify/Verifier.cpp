//===- Verifier.cpp - does a variant compute the same? --------------------===//
#include "optiml/Evaluate/Verify/Verifier.h"
#include "BlockSample.h"
#include "VerifierImpl.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ThreadPool.h"
#include <cmath>
#include <unistd.h>

using namespace optiml;
using emu::ReplayFault;

std::string optiml::replayProgramOf(const Toolchain &toolchain) {
  const char *fromEnvironment = getenv("OPTIML_REPLAY");
  return fromEnvironment && *fromEnvironment ? fromEnvironment : toolchain.libDir + "/../bin/optiml-replay";
}

Verifier::Verifier() = default;
Verifier::~Verifier() = default;

llvm::Expected<std::unique_ptr<Verifier>> Verifier::create(const Toolchain &toolchain, const std::string &path,
                                                           const std::string &text, const CompileOptions &compile,
                                                           std::vector<Workload> workloads,
                                                           const VerifyOptions &given) {
  VerifyOptions options = given;
  if (options.replayProgram.empty())
    options.replayProgram = replayProgramOf(toolchain);
  auto build = [=](const std::string &text, const std::vector<std::pair<uint32_t, std::string>> &outputs) {
    return emu::buildReplayModules(path, text, compile, toolchain, outputs);
  };
  return create(build, text, std::move(workloads), options);
}

llvm::Expected<std::unique_ptr<Verifier>> Verifier::create(ModuleBuilder builder, const std::string &text,
                                                           std::vector<Workload> workloads,
                                                           const VerifyOptions &options) {
  if (access(options.replayProgram.c_str(), X_OK) != 0)
    return makeError("cannot find optiml-replay at '{0}'; set OPTIML_REPLAY to its path", options.replayProgram);
  llvm::Expected<TempDir> dir = TempDir::create("optiml-verify");
  if (!dir)
    return dir.takeError();
  std::unique_ptr<Verifier> v(new Verifier);
  v->impl = std::make_unique<Impl>(std::move(*dir));
  Impl &impl = *v->impl;
  impl.build = std::move(builder);
  impl.text = text;
  impl.workloads = std::move(workloads);
  impl.options = options;
  impl.boundsModule = impl.dir.file("original-bounds.so");
  impl.verifyModule = impl.dir.file("original-verify.so");
  impl.shadowModule = impl.dir.file("original-shadow.so");
  if (llvm::Error e = impl.build(text, {{emu::ModeBounds, impl.boundsModule},
                                        {emu::ModeVerify | emu::ModeCoverage, impl.verifyModule},
                                        {emu::ModeShadow, impl.shadowModule}}))
    return std::move(e);
  return v;
}

void Verifier::addLarge(Workload workload) {
  impl->large = unsigned(impl->workloads.size());
  impl->workloads.push_back(std::move(workload));
}

static Verdict verdictOf(const ReplayFault &f) {
  if (f.kind == "timeout")
    return Verdict::Timeout;
  if (f.kind == "memory" || f.kind == "launch")
    return Verdict::OverLimit;
  return Verdict::RuntimeError;
}

/// The fault is the verdict, which is final: false.
bool optiml::refuse(VerifyReport &report, const ReplayFault &f, const std::string &where) {
  report.verdict = verdictOf(f);
  report.why = f.kind + ": " + f.message + ", on " + where;
  report.faults.push_back(f);
  return false;
}

llvm::Expected<bool> Verifier::Impl::checkRun(const std::string &module, const Target &t, ReferenceCase &c,
                                              uint64_t orderSeed, double seconds, VerifyReport &report,
                                              Coverage &covered, emu::ReplayResult *ran) {
  llvm::Expected<ReplayRun> run = replay(module, t.workload, t.launch, c, t.plan, orderSeed, seconds);
  if (!run)
    return run.takeError();
  if (ran)
    *ran = run->result;
  ++report.runs;
  auto done = llvm::scope_exit([&] { llvm::sys::fs::remove_directories(run->outputDir); });
  const LaunchImage &launch = workloads[t.workload].launches[t.launch];
  for (const ReplayFault &f : run->result.faults) {
    if (f.kind == "benign-race" || (run->result.ok && c.faultKinds.count(f.kind)))
      continue;
    return refuse(report, f, c.name);
  }
  if (!run->result.ok)
    return makeError("optiml-replay ended without a result or a reason");
  for (unsigned i = 0; i < c.buffers.size(); ++i) {
    std::string file = run->outputDir + "/b" + std::to_string(i) + ".bin";
    if (!c.present[i] || !llvm::sys::fs::exists(file))
      continue; // a variable that one of the two modules lacks
    llvm::Expected<std::string> bytes = readFile(file);
    if (!bytes)
      return bytes.takeError();
    std::optional<Difference> d = compareBuffer(c.buffers[i], *bytes, options.floats, &report.error);
    if (!d)
      continue;
    d->kernel = launch.name;
    d->input = c.name;
    report.verdict = Verdict::WrongResult;
    report.why = d->str();
    report.difference = std::move(d);
    return false;
  }
  covered.addRun({run->result.ran.begin(), run->result.ran.end()}, run->result.missed);
  return true;
}

llvm::Expected<bool> Verifier::Impl::checkRaces(const std::string &module, const Target &t, ReferenceCase &c,
                                                VerifyReport &report) {
  // Of several steps, the later ones would find scratch memory that only some blocks filled.
  if (t.plan.steps.size() != 1) {
    report.notes.push_back("races were not checked on " + c.name + ", which takes long");
    return true;
  }
  const emu::ReplayStep &step = t.plan.steps.front();
  std::vector<uint32_t> blocks = closeBlocks(step.grid);
  llvm::Expected<ReplayRun> run = replay(module, t.workload, t.launch, c, t.plan, 0, options.raceSeconds, blocks);
  if (!run)
    return run.takeError();
  llvm::sys::fs::remove_directories(run->outputDir);
  ++report.runs;
  for (const ReplayFault &f : run->result.faults) {
    if (f.kind == "timeout" || f.kind == "memory") {
      report.notes.push_back("races were not checked on " + c.name + ", which takes long");
      return true;
    }
    if (f.kind == "benign-race" || c.faultKinds.count(f.kind))
      continue;
    return refuse(report, f, c.name);
  }
  report.notes.push_back(
      llvm::formatv(
          "{0} takes long: it was compared in one order of blocks, and checked for races on {1} of {2} blocks", c.name,
          blocks.empty() ? blocksOf(step.grid) : blocks.size(), blocksOf(step.grid))
          .str());
  return true;
}

llvm::Expected<bool> Verifier::Impl::checkOtherInputs(const Changed &changed, const std::vector<Target> &targets,
                                                      unsigned inputs, VerifyReport &report, Coverage &covered) {
  constexpr unsigned mostRuns = 24;
  unsigned runs = 0;
  // Far out, what a clamp cuts off is everywhere, and each copy of it is reached.
  for (unsigned input : {firstMasked, inputs + 1, firstWide, firstMasked + 1, inputs + 2, firstMasked + 2})
    for (const Target &t : targets) {
      if (covered.missed().empty() || runs == mostRuns)
        return true;
      ReferenceCase &captured = caseOf(t.workload, t.launch, 0), &c = caseOf(t.workload, t.launch, input);
      if (!captured.unusable.empty() || !captured.raceChecked || captured.isLong)
        continue;
      if (llvm::Error e = prepare(c, t.workload, t.launch, input))
        return std::move(e);
      if (!c.unusable.empty() || !c.raceChecked)
        continue;
      ++runs;
      double limit = std::min(options.seconds, std::max(5.0, 10 * c.verifySeconds + 2));
      llvm::Expected<bool> good = checkRun(changed.verifyModule, t, c, 0, limit, report, covered);
      if (!good || !*good)
        return good;
    }
  return true;
}

llvm::Error Verifier::Impl::buildVerify(Changed &changed) {
  if (!changed.verifyModule.empty())
    return llvm::Error::success();
  changed.verifyModule = changed.folder + "/verify.so";
  return build(changed.text, {{emu::ModeVerify | emu::ModeCoverage, changed.verifyModule}});
}

llvm::Error Verifier::Impl::buildBounds(Changed &changed) {
  std::lock_guard lock(changed.mutex);
  if (!changed.boundsModule.empty())
    return llvm::Error::success();
  changed.boundsModule = changed.folder + "/bounds.so";
  return build(changed.text, {{emu::ModeBounds | emu::ModeCoverage, changed.boundsModule}});
}

void Verifier::Impl::leaveOutCopies(const Changed &changed, Coverage &covered) {
  std::lock_guard lock(coverageMutex);
  if (originalCoverageKnown)
    covered.ignoreCopies(changed.text, originalCovered, text);
}

llvm::Expected<bool> Verifier::Impl::compareNear(Changed &changed, const Compared &rewrite, VerifyReport &report,
                                                 Coverage &covered) {
  leaveOutCopies(changed, covered);
  if (covered.missed().empty()) // none need be made
    return true;
  for (auto &[workload, sizes] : near) {
    if (sizes.kernel.recorded != rewrite.rewrite->originalSymbol)
      continue;
    llvm::Error failure = llvm::Error::success();
    std::call_once(sizes.made, [&, workload = workload] {
      const CheckedModules original = {boundsModule, verifyModule};
      failure = llvm::joinErrors(std::move(failure), deriveNearSizes(sizes.recorded, sizes.kernel, original, options,
                                                                     sizes.directory, sizes.seconds)
                                                         .moveInto(workloads[workload]));
    });
    std::vector<Target> targets;
    VerifyReport unasked; // which of these sizes keep the original
    if (failure)
      return std::move(failure);
    if (llvm::Error e = addTargets(workload, *rewrite.rewrite, targets, unasked))
      return std::move(e);
    const size_t together = std::max(1u, options.jobs);
    for (size_t i = 0; i < targets.size(); i += together) {
      leaveOutCopies(changed, covered);
      if (covered.missed().empty())
        return true;
      auto isFinal = compareAll(changed, llvm::ArrayRef(targets).slice(i, std::min(together, targets.size() - i)), 0,
                                false, report, covered);
      if (!isFinal || *isFinal)
        return isFinal ? llvm::Expected<bool>(false) : isFinal.takeError();
    }
  }
  return true;
}

llvm::Expected<bool> Verifier::Impl::runLarge(Changed &changed, const Target &t, bool few, VerifyReport &report,
                                              Coverage &covered, double &blockSeconds) {
  leaveOutCopies(changed, covered);
  const std::array<uint32_t, 3> &grid = t.plan.steps.front().grid;
  if (covered.missed().empty())
    return true;
  if (few || closeBlocks(grid, manyBlocks) != closeBlocks(grid, fewBlocks)) {
    llvm::Expected<bool> good = checkSome(changed, t, few ? fewBlocks : manyBlocks, report, covered, blockSeconds);
    if (few || !good || !*good)
      return good;
  }
  leaveOutCopies(changed, covered);
  return covered.missed().empty() ? true : checkAll(changed, t, blockSeconds, report, covered);
}

llvm::Expected<bool> Verifier::Impl::reachTheRest(Changed &changed, const Compared &rewrite, unsigned inputs,
                                                  VerifyReport &report, Coverage &covered) {
  std::vector<Target> larger = rewrite.large;
  std::set<std::string> wanted; // the kernels that have not run as a whole come first
  for (const emu::MissedCode &m : covered.missed())
    wanted.insert({m.kernel, plainName(demangled(m.kernel))});
  std::stable_partition(larger.begin(), larger.end(), [&](const Target &t) {
    return llvm::any_of(t.plan.steps, [&](const emu::ReplayStep &step) { return wanted.count(step.kernel) != 0; });
  });
  // Sizes decide more often than data do. A few blocks first: of blocks that work long, more do not end in time.
  std::vector<double> blockSeconds(larger.size(), HUGE_VAL);
  for (bool few : {true, false}) {
    for (size_t i = 0; i < larger.size(); ++i) {
      llvm::Expected<bool> good = runLarge(changed, larger[i], few, report, covered, blockSeconds[i]);
      if (!good || !*good)
        return good;
    }
    if (!few)
      break;
    llvm::Expected<bool> good = compareNear(changed, rewrite, report, covered);
    if (!good || !*good)
      return good;
  }
  if (changed.dataDecides) {
    llvm::Expected<bool> good = checkOtherInputs(changed, rewrite.targets, inputs, report, covered);
    if (!good || !*good)
      return good;
  }
  leaveOutCopies(changed, covered);
  std::vector<emu::MissedCode> missed = covered.missed();
  report.verdict = missed.empty() ? Verdict::Correct : Verdict::Untested;
  if (!missed.empty())
    report.why = "no comparison reached " + placesOf(missed, missed.front().file, changed.text);
  std::set<std::string> kernels;
  for (const emu::MissedCode &m : missed)
    kernels.insert(plainName(demangled(m.kernel)));
  report.missedKernels.assign(kernels.begin(), kernels.end());
  return true;
}

// Where another run that looks for races takes so long, and would find none, one that looks for bounds is built for it.
static constexpr double worthAnotherModule = 0.2;

llvm::Expected<bool> Verifier::Impl::checkTarget(Changed &changed, const Target &t, unsigned inputs, bool thorough,
                                                 VerifyReport &report, Coverage &covered) {
  emu::ReplayResult ran; // on the captured input. A kernel whose course no data decide is free of races on all, or none
  bool racesAgain = true;
  for (unsigned input = 0; input <= inputs; ++input) {
    ReferenceCase &c = caseOf(t.workload, t.launch, input);
    if (llvm::Error e = prepare(c, t.workload, t.launch, input))
      return std::move(e);
    if (!c.unusable.empty()) {
      report.notes.push_back(c.name + " is left out: " + c.unusable);
      report.unaffordable += c.unaffordable;
      if (!input && thorough) { // its conditions say that it was tested there
        report.verdict = Verdict::NotApplicable;
        report.why = "new text must be tested on every launch that it may run on, but " + report.notes.back();
        return false;
      }
      if (!input)
        break;
      continue;
    }
    for (const ReplayFault &f : c.faults)
      if (!input)
        report.originalFaults.push_back(f);
    {
      std::lock_guard lock(changed.mutex);
      changed.racesChecked |= c.raceChecked;
    }
    const uint64_t dataSeed = input ? options.seed + 31 * input : 0;
    const bool quick = ran.seconds < worthAnotherModule;
    const bool whole = c.raceChecked && !c.isLong && (racesAgain || quick); // one run shows everything
    if (llvm::Error e = whole ? llvm::Error::success() : buildBounds(changed))
      return std::move(e);
    const double limit = std::min(
        options.seconds, std::max(5.0, 10 * (c.raceChecked && !c.isLong ? c.verifySeconds : c.boundsSeconds) + 2));
    const unsigned orders = input || (c.isLong && !thorough) ? 1 : std::max(1u, options.orders);
    for (unsigned order = 0; order < orders && (!order || racesAgain); ++order) {
      // Fresh inputs take a permuted order too: a race that changes values shows in either.
      const uint64_t seed = order ? options.seed + order + 31 * input : dataSeed;
      llvm::Expected<bool> good = checkRun(whole ? changed.verifyModule : changed.boundsModule, t, c, seed, limit,
                                           report, covered, input || order ? nullptr : &ran);
      if (!good || !*good)
        return good;
      if (!input && !order) {
        racesAgain = thorough || ran.dataDecides || !whole;
        std::lock_guard lock(changed.mutex);
        changed.dataDecides |= ran.dataDecides;
      }
    }
    if (c.isLong && c.raceChecked && !input) {
      llvm::Expected<bool> good = checkRaces(changed.verifyModule, t, c, report);
      if (!good || !*good)
        return good;
    }
    report.longLaunches += c.isLong && !input;
    report.launches += input == 0;
  }
  return true;
}

llvm::Expected<bool> Verifier::Impl::compareAll(Changed &changed, llvm::ArrayRef<Target> targets, unsigned inputs,
                                                bool thorough, VerifyReport &report, Coverage &covered) {
  struct Compared {
    std::optional<llvm::Expected<bool>> good;
    VerifyReport report;
    Coverage covered;
  };
  std::vector<Compared> compared(targets.size());
  auto compare = [&](size_t i) {
    Compared &own = compared[i];
    const unsigned its = targets[i].workload == large ? std::min(inputs, options.freshInputs) : inputs;
    own.good.emplace(checkTarget(changed, targets[i], its, thorough, own.report, own.covered));
  };
  if (options.jobs > 1) {
    llvm::DefaultThreadPool threads(llvm::hardware_concurrency(options.jobs));
    for (size_t i = 0; i < targets.size(); ++i)
      threads.async(compare, i);
    threads.wait();
  }
  llvm::Error failure = llvm::Error::success();
  bool isFinal = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    Compared &own = compared[i];
    if (!own.good && !failure && !isFinal)
      compare(i);
    if (!own.good)
      break;
    if (!*own.good) {
      failure = llvm::joinErrors(std::move(failure), own.good->takeError());
    } else if (!failure && !isFinal) {
      isFinal = !**own.good;
      report.add(std::move(own.report), isFinal);
      covered.add(own.covered);
    }
  }
  if (failure)
    return std::move(failure);
  return isFinal;
}

llvm::Expected<VerifyReport> Verifier::Impl::check(Changed &changed, const Compared &rewrite) {
  const std::vector<Target> &targets = rewrite.targets;
  // Text that nothing proves is tried on more inputs.
  constexpr unsigned thoroughInputs = 3;
  const bool thorough = rewrite.rewrite->testedOnly;
  unsigned inputs = thorough ? std::max(options.freshInputs, thoroughInputs) : options.freshInputs;
  changed.dataDecides = changed.racesChecked = false;
  VerifyReport report;
  Coverage covered;
  auto isFinal = compareAll(changed, targets, inputs, thorough, report, covered);
  if (!isFinal)
    return isFinal.takeError();
  if (*isFinal)
    return report;
  if (!report.launches) {
    report.verdict = report.unaffordable ? Verdict::NotApplicable : Verdict::RuntimeError;
    report.why = report.notes.empty() ? "no launch could be compared" : report.notes.front();
    return report;
  }
  if (!changed.racesChecked)
    report.notes.push_back("races were not checked: every launch takes longer than the limit for that");
  llvm::Expected<bool> good = reachTheRest(changed, rewrite, inputs, report, covered);
  if (!good)
    return good.takeError();
  return report;
}
