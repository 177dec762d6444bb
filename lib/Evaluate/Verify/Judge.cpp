//===- Judge.cpp - what a Verifier tells of all that it has compared ------===//
#include "VerifierImpl.h"
#include "optiml/Core/Interfaces.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ThreadPool.h"

using namespace optiml;

void VerifyReport::add(VerifyReport other, bool isFinal) {
  launches += other.launches;
  runs += other.runs;
  unaffordable += other.unaffordable;
  longLaunches += other.longLaunches;
  error = std::max(error, other.error);
  llvm::append_range(notes, std::move(other.notes));
  llvm::append_range(originalFaults, std::move(other.originalFaults));
  if (!isFinal)
    return;
  verdict = other.verdict;
  why = std::move(other.why);
  missedKernels = std::move(other.missedKernels);
  difference = std::move(other.difference);
  llvm::append_range(faults, std::move(other.faults));
}

void Verifier::verify(const Variant &variant, Measurement &m) {
  auto report = verify(variant);
  if (!report) {
    m.verdict = Verdict::RuntimeError;
    m.why = "verification could not run: " + llvm::toString(report.takeError());
    return;
  }
  m.verdict = report->verdict;
  m.why = report->why;
  m.missedKernels = std::move(report->missedKernels);
  m.counters["verify.launches"] += report->launches;
  m.counters["verify.runs"] += report->runs + report->earlierRuns;
  m.counters["verify.error"] = std::max(m.counters["verify.error"], report->error);
  if (report->longLaunches)
    m.counters["verify.long"] += report->longLaunches;
  std::lock_guard lock(impl->notesMutex);
  impl->notes.insert(report->notes.begin(), report->notes.end());
  for (const emu::ReplayFault &fault : report->originalFaults)
    if (fault.kind != "benign-race")
      impl->originalFaults.insert(fault.message);
}

llvm::Error Verifier::addDerivedSizes(const Workload &recorded, const std::vector<SizedKernel> &kernels,
                                      const std::string &directory, double seconds) {
  std::vector<llvm::Expected<Workload>> made;
  for (size_t i = 0; i < kernels.size(); ++i)
    made.emplace_back(Workload());
  const CheckedModules original = {impl->boundsModule, impl->verifyModule};
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency());
  for (size_t i = 0; i < kernels.size(); ++i)
    threads.async([&, i] {
      made[i] = deriveSizes(recorded, {kernels[i]}, original, impl->options, directory + "/derived" + std::to_string(i),
                            seconds);
    });
  threads.wait();
  llvm::Error failures = llvm::Error::success();
  for (llvm::Expected<Workload> &own : made)
    if (!own)
      failures = llvm::joinErrors(std::move(failures), own.takeError());
    else if (!own->launches.empty())
      impl->workloads.push_back(std::move(*own));
  for (size_t i = 0; i < kernels.size(); ++i) {
    Impl::NearSizes &near = impl->near[unsigned(impl->workloads.size())];
    near.recorded.directory = recorded.directory;
    llvm::copy_if(recorded.launches, std::back_inserter(near.recorded.launches),
                  [&](const LaunchImage &launch) { return launch.kernel == kernels[i].recorded; });
    near.kernel = kernels[i];
    near.directory = directory + "/near" + std::to_string(i);
    near.seconds = seconds;
    impl->workloads.emplace_back();
  }
  return failures;
}

std::vector<Workload> Verifier::workloads() const {
  std::vector<Workload> whole;
  for (unsigned w = 0; w < impl->workloads.size(); ++w)
    if (w != impl->large && !impl->near.count(w))
      whole.push_back(impl->workloads[w]);
  return whole;
}

const std::string &Verifier::shadowModule() const { return impl->shadowModule; }

std::vector<std::string> Verifier::originalFaults() const {
  std::lock_guard lock(impl->notesMutex);
  return {impl->originalFaults.begin(), impl->originalFaults.end()};
}

std::vector<std::string> Verifier::notes() const {
  std::lock_guard lock(impl->notesMutex);
  return {impl->notes.begin(), impl->notes.end()};
}
