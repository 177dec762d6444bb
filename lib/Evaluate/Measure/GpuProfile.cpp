//===- GpuProfile.cpp - hardware counters of a measured variant -----------===//
#include "GpuEvaluatorImpl.h"
#include "Verify/ReplayProcess.h"
#include "optiml/Gpu/NsightCompute.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"

using namespace optiml;
using namespace optiml::gpu;

/// Nsight Compute on a worker that replays the launch.
bool GpuEvaluator::Impl::profileByNcu(const std::string &cubin, const PlannedLaunch &launch, RawCounters &raw,
                                      std::string &why) {
  unsigned number = counter++;
  std::string job = dir.file("ncu" + std::to_string(number) + ".json");
  emu::ReplayJob replay =
      replayJob(cubin, options.common.performance.directory, launch.launch, {launch.scratch, launch.steps});
  if (!emu::writeJob(replay, job, why))
    return false;
  NcuOptions ncu;
  ncu.program = WorkerPool::workerCommand(options.common.toolchain.libDir + "/../bin");
  ncu.program.insert(ncu.program.end(), {"--replay", job});
  ncu.logFile = dir.file("ncu" + std::to_string(number) + ".csv");
  std::string own = options.common.toolchain.cudaPath + "/bin/ncu";
  if (!findOnPath(own).empty())
    ncu.ncu = own;
  ProcessOptions process;
  process.limits.seconds = 120;
  process.limits.outputBytes = 1 << 20;
  process.env = {{"LC_ALL", "C"}, {"TMPDIR", dir.path()}};
  process.cancel = options.common.verify.cancel;
  auto result = runProcess(ncuCommand(ncu), process);
  if (!result) {
    why = llvm::toString(result.takeError());
    return false;
  }
  std::string text;
  if (auto log = readFile(ncu.logFile))
    text = *log;
  else
    llvm::consumeError(log.takeError());
  std::vector<NcuKernel> kernels;
  if (!parseNcuCsv(text.empty() ? result->out + result->err : text, kernels, why)) {
    if (!result->ok())
      why += " (ncu " + result->describe() + ")";
    return false;
  }
  raw = combine(kernels);
  return true;
}

/// Of each kernel the few launches that take most of its time; a profile of hundreds tells no more, and takes seconds.
CandidateRequest GpuEvaluator::Impl::profiledPart(const CandidateRequest &candidate) const {
  static constexpr unsigned mostOfAKernel = 4;
  static constexpr double mostOfTheTime = 0.8; // the rest tells little, and each launch takes a tenth of a second
  const std::vector<LaunchImage> &launches = options.common.performance.launches;
  auto order = llvm::to_vector(llvm::make_pointer_range(candidate.launches));
  auto time = [&](const PlannedLaunch *p) { return launches[p->launch].weight * launchSeconds[p->launch]; };
  std::stable_sort(order.begin(), order.end(), [&](auto *a, auto *b) { return time(a) > time(b); });
  double left = 0;
  for (const PlannedLaunch *planned : order)
    left += time(planned);
  const double enough = (1 - mostOfTheTime) * left;
  std::map<std::string, unsigned> taken;
  CandidateRequest part;
  part.cubin = candidate.cubin;
  for (const PlannedLaunch *planned : order) {
    if (left <= enough && !part.launches.empty())
      break;
    left -= time(planned);
    if (taken[launches[planned->launch].kernel]++ < mostOfAKernel)
      part.launches.push_back(*planned);
  }
  return part;
}

// A kernel runs about so often while its counters are read: passes, and what CUPTI runs beside them.
static constexpr double profileRuns = 15;

void GpuEvaluator::Impl::addProfile(const CandidateRequest &whole, Measurement &m) {
  if (!profiles || options.profiler == Profiler::None)
    return;
  CandidateRequest candidate = profiledPart(whole);
  double seconds = 0;
  for (const PlannedLaunch &launch : candidate.launches)
    seconds += profileRuns * launchSeconds[launch.launch];
  if (seconds > options.profileSeconds) {
    note(llvm::formatv("no hardware counters where reading them would take some {0:f0} s", seconds));
    return;
  }
  auto start = std::chrono::steady_clock::now();
  std::string why;
  std::vector<RawCounters> all;
  if (options.profiler == Profiler::NsightCompute) {
    for (const PlannedLaunch &launch : candidate.launches)
      if (RawCounters raw; why.empty() && profileByNcu(candidate.cubin, launch, raw, why))
        all.push_back(std::move(raw));
  } else {
    Visit visit(*this, /*ahead=*/true, WorkerPool::Clock::time_point::max());
    auto reply = visit ? pool.profile({candidate}, 60 + allowedSeconds())
                       : llvm::Expected<ProfileReply>(makeError("the search was cancelled"));
    why = reply ? reply->why : llvm::toString(reply.takeError());
    if (reply)
      for (const RawCounters &raw : reply->launches)
        if (!raw.empty())
          all.push_back(raw);
  }
  if (!why.empty()) {
    profiles = false;
    note("no hardware counters: " + why);
    return;
  }
  KernelCounters diagnosed = diagnose(combine(all));
  for (const auto &[name, value] : diagnosed.counters)
    m.counters[name] = value;
  m.counters["profile_seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!diagnosed.bottleneck.empty())
    m.bottleneck = diagnosed.bottleneck;
}
