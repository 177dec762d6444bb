//===- Worker.cpp - answers a search's questions on one GPU ---------------===//
#include "Worker.h"
#include "optiml/Gpu/RangeProfiler.h"
#include "optiml/Gpu/Statistics.h"
#include <algorithm>
#include <chrono>

using namespace optiml;
using namespace optiml::gpu;

// The program did end.
static constexpr double firstRunSeconds = 60;

Worker::Worker(Device &device)
    : device(device), launches(device), cases(device, launches),
      planning(
          std::async(std::launch::async, [this] { return MetricPlan::create(this->device.info.chip, noMetrics); })) {}

LoadReply Worker::load(const LoadRequest &request) {
  LoadReply reply;
  random.seed(uint32_t(request.seed));
  if (!launches.workload().launches.empty())
    reply.why = "a workload is loaded already";
  else if (!launches.load(request.workload))
    reply.why = device.error;
  for (const DeviceLaunch &launch : launches.launches())
    reply.unusable.push_back(launch.unusable);
  reply.notes = launches.notes();
  return reply;
}

/// With made-up row lengths, say, one thread may do the work of all. Every variant would take as long on such inputs,
/// and the search would see a few of them instead of hundreds.
static double worthwhileBeside(double captured) { return 0.05 + 20 * captured; }

PrepareReply Worker::prepare(const PrepareRequest &request) {
  PrepareReply reply;
  cold = request.cold;
  prepared.clear();
  cases.forget();
  original = Module::load(device, request.cubin);
  if (!original) {
    reply.why = device.error;
    return reply;
  }
  for (const CaseRequest &wanted : request.cases) {
    DeviceCase c;
    c.request = wanted;
    if (wanted.launch >= launches.launches().size()) {
      reply.why = "there is no launch " + std::to_string(wanted.launch);
      return reply;
    }
    // On other inputs a loop may never end; the captured ones come first and tell how long a run takes.
    const DeviceCase *known = wanted.inputs.empty() ? nullptr : captured(wanted.launch);
    const double limit = known ? limitAfter(known->seconds) : firstRunSeconds,
                 worthwhile = known && !request.careful ? worthwhileBeside(known->seconds) : limit;
    if (!cases.prepare(c, *original, request.careful, limit, worthwhile)) {
      reply.why = device.error;
      return reply;
    }
    reply.unusable.push_back(c.unusable);
    prepared.push_back(std::move(c));
  }
  for (const DeviceCase &c : prepared) {
    if (!c.unusable.empty() || captured(c.request.launch) != &c)
      continue;
    Run run;
    auto known = baselines.find(c.request.launch);
    if (!launches.planOriginal(c.request.launch, *original, run) ||
        (known == baselines.end() && !timeOriginal(c, run, known))) {
      reply.why = device.error;
      return reply;
    }
    PreparedLaunch launch;
    launch.launch = c.request.launch;
    launch.seconds = known->second.seconds;
    launch.spread = known->second.spread;
    launch.writtenBytes = c.writtenBytes;
    launch.deterministic = c.deterministic;
    if (c.changesNothing)
      reply.notes.push_back("kernel " + run.launch->kernelName() +
                            " changes nothing on the captured inputs; it is compared on others");
    for (unsigned i = 0; i < c.buffers.size(); ++i) {
      if (c.buffers[i].poisoned)
        launch.poisoned.push_back(i);
      if (c.buffers[i].unstable)
        reply.notes.push_back(run.launch->bufferName(i) + " of kernel " + run.launch->kernelName() +
                              " is not compared: the original's own results vary");
    }
    reply.launches.push_back(launch);
  }
  return reply;
}

bool Worker::timeOriginal(const DeviceCase &c, const Run &run, Baselines::iterator &timed) {
  RaceResult result;
  RaceSettings settings;
  settings.leastRounds = 7;
  settings.seconds = 0.5;
  settings.cold = cold;
  if (!race(device, launches, cases, c, run, {}, settings, random, result))
    return false;
  timed =
      baselines.try_emplace(c.request.launch, Baseline{median(result.baseline), relativeSpread(result.baseline)}).first;
  return true;
}

/// The first case of a launch is that of the captured inputs.
const DeviceCase *Worker::captured(unsigned launch) const {
  for (const DeviceCase &c : prepared)
    if (c.request.launch == launch)
      return c.unusable.empty() && c.request.inputs.empty() ? &c : nullptr;
  return nullptr;
}

static const char *verdictOf(Failure failure) {
  switch (failure) {
  case Failure::None: return "correct";
  case Failure::OverLimit: return "over-limit";
  case Failure::Timeout: return "timeout";
  case Failure::Runtime: break;
  }
  return "runtime-error";
}

void Worker::begin(const CandidateRequest &request, Candidate &into) {
  into.reply.verdict = "correct";
  auto failed = [&](Failure failure) {
    into.reply.verdict = verdictOf(failure);
    into.reply.why = device.error;
  };
  into.module = Module::load(device, request.cubin);
  if (!into.module)
    return failed(Failure::Runtime);
  for (const PlannedLaunch &planned : request.launches) {
    Failure failure;
    if (!launches.plan(planned, *into.module, into.runs[planned.launch], failure))
      return failed(failure);
  }
}

/// Whether one run of so many seconds is all that it takes to leave it. It is timed with what stands around it.
static bool isHopeless(const EvaluateRequest &request, double original, double seconds) {
  constexpr double isSlow = 0.05, tolerated = 0.8;
  return request.hopeless > 0 && seconds > isSlow && original < tolerated * request.hopeless * seconds;
}

void Worker::verify(const EvaluateRequest &request, Candidate &candidate) {
  CandidateReply &reply = candidate.reply;
  std::map<unsigned, bool> counted;
  for (const DeviceCase &c : prepared) {
    auto run = candidate.runs.find(c.request.launch);
    if (!c.unusable.empty() || run == candidate.runs.end())
      continue;
    double limit = limitAfter(c.seconds);
    const auto begin = std::chrono::steady_clock::now();
    Outcome outcome = cases.check(c, run->second, limit);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool hopeless = outcome.good() && isHopeless(request, c.seconds, took);
    if (outcome.good() && !hopeless && c.deterministic && c.request.inputs.empty()) {
      ++reply.runs;
      outcome = cases.repeat(c, run->second, limit);
    }
    ++reply.runs;
    if (!counted[c.request.launch]) {
      counted[c.request.launch] = true;
      ++reply.launches;
    }
    if (hopeless && c.request.inputs.empty()) { // nothing else is worth the time
      const double ratio = c.seconds / took;
      reply.times.push_back({c.request.launch, took, c.seconds, ratio, ratio, ratio, 1});
      candidate.isRaced = false;
      return;
    }
    if (outcome.good())
      continue;
    reply.verdict = outcome.failure == Failure::None ? "wrong-result" : verdictOf(outcome.failure);
    reply.why = outcome.failure == Failure::None ? outcome.difference : outcome.why;
    return;
  }
  if (reply.runs == 0) {
    reply.verdict = "not-applicable";
    reply.why = "no captured launch could be compared on the GPU";
  }
}

bool Worker::timeLaunch(const EvaluateRequest &request, const DeviceCase &c, std::vector<Candidate *> running) {
  Run originalRun;
  if (!launches.planOriginal(c.request.launch, *original, originalRun))
    return false;
  std::vector<Run> runs;
  for (Candidate *candidate : running)
    runs.push_back(candidate->runs.at(c.request.launch));
  RaceSettings settings{request.fewestRounds,
                        request.leastRounds,
                        request.mostRounds,
                        request.precision,
                        request.seconds,
                        request.hopeless,
                        cold};
  settings.sparing = !request.aims.empty();
  for (const LaunchAim &aim : request.aims)
    if (aim.launch == c.request.launch) {
      settings.precision = aim.precision;
      settings.rival = aim.rival;
    }
  RaceResult result;
  if (!race(device, launches, cases, c, originalRun, runs, settings, random, result))
    return false;
  for (size_t i = 0; i < running.size(); ++i) {
    if (!result.differences[i].empty()) {
      running[i]->reply.verdict = "wrong-result";
      running[i]->reply.why = result.differences[i];
      continue;
    }
    std::vector<double> ratios;
    for (size_t r = 0; r < result.baseline.size(); ++r)
      ratios.push_back(result.baseline[r] / result.runners[i][r]);
    Interval interval = medianInterval(ratios);
    running[i]->reply.times.push_back({c.request.launch, median(result.runners[i]), median(result.baseline),
                                       median(ratios), interval.low, interval.high, unsigned(ratios.size())});
  }
  return true;
}

bool Worker::time(const EvaluateRequest &request, std::vector<Candidate> &candidates) {
  for (const auto &[launch, baseline] : baselines) {
    const DeviceCase *c = captured(launch);
    std::vector<Candidate *> running;
    for (Candidate &candidate : candidates)
      if (candidate.reply.verdict == "correct" && candidate.runs.count(launch) && candidate.isRaced)
        running.push_back(&candidate);
    if (c && !running.empty() && !timeLaunch(request, *c, running))
      return false;
  }
  return true;
}

EvaluateReply Worker::evaluate(const EvaluateRequest &request) {
  EvaluateReply reply;
  std::vector<Candidate> candidates(request.candidates.size());
  for (size_t i = 0; i < candidates.size() && !device.lost; ++i) {
    begin(request.candidates[i], candidates[i]);
    if (request.verify && candidates[i].reply.verdict == "correct")
      verify(request, candidates[i]);
  }
  if (!device.lost && !time(request, candidates))
    reply.why = "timing failed: " + device.error;
  reply.lost = device.lost;
  for (Candidate &candidate : candidates)
    reply.candidates.push_back(std::move(candidate.reply));
  return reply;
}

ProfileReply Worker::profile(const ProfileRequest &request) {
  ProfileReply reply;
  Candidate candidate;
  begin(request.candidate, candidate);
  if (candidate.reply.verdict != "correct") {
    reply.why = candidate.reply.why;
    return reply;
  }
  if (planning.valid())
    metrics = planning.get();
  if (!metrics) {
    reply.why = noMetrics;
    return reply;
  }
  std::unique_ptr<RangeProfiler> profiler = RangeProfiler::create(device.context, *metrics, reply.why);
  if (!profiler)
    return reply;
  for (const PlannedLaunch &planned : request.candidate.launches) {
    std::map<std::string, double> raw;
    const DeviceCase *c = captured(planned.launch);
    const Run &run = candidate.runs.at(planned.launch);
    Failure failure;
    if (c && (!cases.restore(*c, run, true) || !device.finish() ||
              !profiler->profile([&] { return launches.enqueue(run, failure) && device.finish(); }, raw, reply.why))) {
      if (reply.why.empty())
        reply.why = device.error;
      return reply;
    }
    reply.launches.push_back(std::move(raw));
  }
  return reply;
}

bool Worker::answer(const std::string &line, std::string &reply) {
  std::string name = requestName(line), error;
  auto with = [&](auto request, auto method) {
    if (decode(line, request, error))
      reply = encode((this->*method)(request));
  };
  if (name == "load")
    with(LoadRequest(), &Worker::load);
  else if (name == "prepare")
    with(PrepareRequest(), &Worker::prepare);
  else if (name == "evaluate")
    with(EvaluateRequest(), &Worker::evaluate);
  else if (name == "profile")
    with(ProfileRequest(), &Worker::profile);
  else
    error = "unknown request '" + name + "'";
  if (!error.empty()) {
    LoadReply mistake; // any reply's "why" will do
    mistake.why = "bad request: " + error;
    reply = encode(mistake);
  }
  return !device.lost;
}
