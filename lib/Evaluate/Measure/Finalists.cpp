//===- Finalists.cpp - the best variants once more --------------------------===//
//
// A longer race against the original, and compute-sanitizer on the winner.
//
//===----------------------------------------------------------------------===//
#include "GpuEvaluatorImpl.h"
#include "Verify/ConcretePlan.h"
#include "optiml/Evaluate/Reward.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;
using namespace optiml::gpu;

double FinalRace::fastest() const {
  double most = 0;
  for (const Runner &runner : runners)
    most = std::max(most, runner.speedup);
  return most;
}

FinalRace GpuEvaluator::race(const std::vector<std::pair<const Variant *, Measurement>> &candidates, double seconds) {
  FinalRace result;
  EvaluateRequest request;
  std::vector<size_t> running;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Verdict verdict;
    auto compiled = impl->compiler->compile(*candidates[i].first, verdict);
    if (!compiled) {
      result.notes.push_back(llvm::toString(compiled.takeError()));
      continue;
    }
    double occupancy;
    auto own = impl->candidateOf(*candidates[i].first, **compiled, occupancy);
    if (!own) {
      result.notes.push_back(llvm::toString(own.takeError()));
      continue;
    }
    running.push_back(i);
    request.candidates.push_back(std::move(*own));
  }
  if (running.empty())
    return result;
  request.fewestRounds = 6; // fewer have no 95 % interval
  request.leastRounds = 21;
  request.mostRounds = 101;
  request.precision = 0.005;
  request.seconds =
      seconds / double(std::max<ptrdiff_t>(1, llvm::count_if(impl->launchSeconds, [](double s) { return s > 0; })));
  request.verify = !llvm::all_of(candidates, [&](const auto &c) { return isVerified(*c.first); });
  auto evaluated = impl->evaluate(request, 3 * impl->allowedSeconds() * double(running.size()),
                                  WorkerPool::Clock::time_point::max());
  if (!evaluated || evaluated->reply.candidates.size() != running.size() || !evaluated->reply.why.empty()) {
    result.notes.push_back("the final race failed: " +
                           (evaluated ? evaluated->reply.why : llvm::toString(evaluated.takeError())));
    return result;
  }
  for (size_t i = 0; i < running.size(); ++i) {
    const CandidateReply &reply = evaluated->reply.candidates[i];
    if (reply.verdict != verdictName(Verdict::Correct)) {
      result.notes.push_back("in the final race: " + reply.why);
      continue;
    }
    Measurement m = candidates[running[i]].second;
    m.time = {};
    if (!impl->addTimes(reply, m)) {
      result.notes.push_back("in the final race: " + m.why);
      continue;
    }
    score(m, impl->baselineMeasurement, impl->weights);
    result.runners.push_back(
        {running[i], m, m.time.baseline / m.time.seconds, m.counters["speedup.low"], m.counters["speedup.high"]});
  }
  return result;
}

SanitizerReport GpuEvaluator::sanitize(const Variant &variant, double seconds) {
  return impl->sanitize(variant, seconds, impl->stopping);
}

SanitizerReport GpuEvaluator::Impl::sanitize(const Variant &variant, double seconds, const Deadline &end) {
  std::lock_guard alone(sanitizing);
  const std::string key = variant.key();
  if (auto known = sanitized.find(key); known != sanitized.end())
    return known->second;
  SanitizerReport report = sanitizeAnew(variant, seconds, end);
  if (!end.passed()) // else it was cut short
    sanitized.emplace(key, report);
  return report;
}

SanitizerReport GpuEvaluator::Impl::sanitizeAnew(const Variant &variant, double seconds, const Deadline &end) {
  const CpuEvaluatorOptions &o = options.common;
  Verdict verdict;
  auto compiled = compiler->compile(variant, verdict);
  if (!compiled)
    return {false, {llvm::toString(compiled.takeError())}};
  std::vector<SanitizerJob> jobs, originals;
  const std::vector<Workload> smaller = isThorough && verifier ? verifier->workloads() : o.verification;
  for (const KernelRewrite &rewrite : variant.rewrites) {
    // One launch of each kernel, the smallest for which the rewrite's conditions hold.
    const Workload *chosen = nullptr;
    unsigned index = 0;
    uint64_t least = UINT64_MAX;
    std::vector<const Workload *> workloads = {&o.performance};
    for (const Workload &w : smaller)
      workloads.push_back(&w);
    for (const Workload *w : workloads)
      for (unsigned i = 0; i < w->launches.size(); ++i) {
        const LaunchImage &launch = w->launches[i];
        const uint64_t threads = threadsOf(launch);
        if (launch.kernel != rewrite.originalSymbol || threads >= least)
          continue;
        auto plan = concretePlan(rewrite, launch);
        if (!plan) {
          llvm::consumeError(plan.takeError());
          continue;
        }
        chosen = w;
        index = i;
        least = threads;
      }
    if (!chosen)
      continue;
    const LaunchImage &launch = chosen->launches[index];
    ConcretePlan plan = llvm::cantFail(concretePlan(rewrite, launch)), identity = identityPlan(launch, launch.kernel);
    for (emu::ReplayStep &step : plan.steps)
      step.kernel = (*compiled)->symbolOf(step.kernel);
    jobs.push_back({chosen->directory, (*compiled)->cubin, {index, plan.scratch, plan.steps}});
    originals.push_back({chosen->directory, originalText->cubin, {index, {}, identity.steps}});
  }
  std::string program = o.toolchain.cudaPath + "/bin/compute-sanitizer";
  Sanitizer sanitizer(program, WorkerPool::workerCommand(o.toolchain.libDir + "/../bin"), dir.path(), end.flag(),
                      seconds);
  return sanitizer.check(jobs, originals);
}
