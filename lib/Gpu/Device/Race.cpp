//===- Race.cpp - timing variants against the original --------------------===//
#include "Race.h"
#include "optiml/Gpu/Statistics.h"
#include <algorithm>
#include <chrono>
#include <numeric>

using namespace optiml::gpu;

namespace {

class Events {
public:
  explicit Events(Device &device) : device(device) {}
  ~Events() {
    if (!device.lost)
      for (CUevent e : events)
        device.cu.cuEventDestroy(e);
  }
  bool record(size_t index) {
    while (events.size() <= index) {
      CUevent e;
      if (!device.ok(device.cu.cuEventCreate(&e, CU_EVENT_DEFAULT), "making an event"))
        return false;
      events.push_back(e);
    }
    return device.ok(device.cu.cuEventRecord(events[index], device.stream), "recording an event");
  }
  bool seconds(size_t from, size_t to, double &into) {
    float milliseconds = 0;
    bool good = device.ok(device.cu.cuEventElapsedTime(&milliseconds, events[from], events[to]), "reading an event");
    into = double(milliseconds) * 1e-3;
    return good;
  }

private:
  Device &device;
  std::vector<CUevent> events;
};

} // namespace

// What stays below this part of what another reached is not worth a closer look.
static constexpr double clearlyBelow = 0.95;
// An original that takes so many times as long as every runner is one of the runs in one round of so many.
static constexpr double muchLonger = 2;
static constexpr size_t fewestOriginals = 3, sparingRounds = 8;

/// Its time is known well enough for a round without it.
static bool sparesOriginal(const RaceResult &result, const RaceSettings &settings) {
  const size_t rounds = result.baseline.size();
  return settings.sparing && rounds >= fewestOriginals && rounds % sparingRounds != 0 && !result.runners.empty() &&
         std::all_of(result.runners.begin(), result.runners.end(), [&](const std::vector<double> &times) {
           return muchLonger * median(times) < median(result.baseline);
         });
}

/// Whether another round would tell more.
static bool settled(const RaceResult &result, const RaceSettings &settings) {
  bool all = true;
  for (const std::vector<double> &times : result.runners) {
    std::vector<double> ratios;
    for (size_t i = 0; i < times.size(); ++i)
      ratios.push_back(result.baseline[i] / times[i]);
    Interval interval = medianInterval(ratios);
    all &= interval.high - interval.low <= settings.precision * median(ratios) ||
           interval.high < clearlyBelow * settings.rival;
  }
  if (result.runners.empty())
    return relativeSpread(result.baseline) <= settings.precision;
  return all;
}

/// A single round tells what is far off.
static bool isHopeless(const RaceResult &result, const RaceSettings &settings) {
  if (settings.hopeless <= 0 || result.baseline.empty() || result.runners.empty())
    return false;
  const double least = result.baseline.size() < 3 ? farOff * settings.hopeless : settings.hopeless;
  return std::all_of(result.runners.begin(), result.runners.end(),
                     [&](const std::vector<double> &times) { return median(result.baseline) < least * median(times); });
}

bool optiml::gpu::race(Device &device, Launches &launches, Cases &cases, const DeviceCase &c, const Run &original,
                       const std::vector<Run> &runners, const RaceSettings &settings, std::mt19937 &random,
                       RaceResult &result) {
  Events events(device);
  size_t n = runners.size() + 1;
  result.runners.assign(runners.size(), {});
  result.differences.assign(runners.size(), "");
  auto runOf = [&](size_t i) -> const Run & { return i ? runners[i - 1] : original; };
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  // Other launches and cases have used the same memory since; from here on only what a run changes is put back.
  for (size_t i = 0; i < n; ++i)
    if (!cases.restore(c, runOf(i), true))
      return false;
  // The first round warms caches and clocks and is not counted.
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned round = 0; round <= settings.mostRounds; ++round) {
    const bool spares = c.deterministic && sparesOriginal(result, settings);
    std::shuffle(order.begin(), order.end(), random);
    if (!device.resetCounters(unsigned(n)))
      return false;
    for (size_t i : order) {
      if (i == 0 && spares)
        continue;
      Failure failure;
      // A short pause keeps the GPU busy until the events and the kernel are queued behind it; otherwise the host's
      // time to launch would be counted.
      bool queued = cases.restore(c, runOf(i), false) && (!settings.cold || device.flushL2()) &&
                    device.spin(12000 + 4000 * unsigned(runOf(i).steps.size())) && events.record(2 * i) &&
                    launches.enqueue(runOf(i), failure) && events.record(2 * i + 1) &&
                    cases.enqueueComparison(c, runOf(i), unsigned(i));
      if (!queued)
        return false;
    }
    switch (device.wait(10 + 50 * double(n) * c.seconds)) {
    case Device::Wait::Done: break;
    case Device::Wait::TimedOut: return device.fail("a timed run did not end");
    case Device::Wait::Failed: return false;
    }
    std::vector<Place> places(n);
    if (!device.readCounters(places.data(), unsigned(n)))
      return false;
    bool comparable = spares || places[0] == nowhere;
    if (!comparable && c.deterministic)
      return device.fail("a repeated run of the original gave another result (at byte " + std::to_string(places[0]) +
                         ")");
    for (size_t i = 1; i < n; ++i)
      if (comparable && places[i] != nowhere && result.differences[i - 1].empty())
        result.differences[i - 1] = "a repeated run of kernel " + original.launch->kernelName() +
                                    " gave another result (at byte " + std::to_string(places[i]) +
                                    "): it depends on something left over, or races; on " + c.request.name;
    std::vector<double> seconds(n);
    for (size_t i = spares; i < n; ++i)
      if (!events.seconds(2 * i, 2 * i + 1, seconds[i]))
        return false;
    if (spares)
      seconds[0] = median(result.baseline);
    // Restoring and comparing included: with large buffers that is most of it.
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    result.baseline.push_back(seconds[0]);
    for (size_t i = 1; i < n; ++i)
      result.runners[i - 1].push_back(seconds[i]);
    if (round == 0 && spent < settings.seconds / 3 && !isHopeless(result, settings)) {
      result.baseline.clear();
      for (std::vector<double> &times : result.runners)
        times.clear();
      continue;
    }
    size_t rounds = result.baseline.size();
    bool failed = std::any_of(result.differences.begin(), result.differences.end(), [](auto &d) { return !d.empty(); });
    if ((failed && runners.size() == 1) || (rounds >= settings.fewestRounds && spent > settings.seconds) ||
        isHopeless(result, settings) || (rounds >= settings.leastRounds && settled(result, settings)))
      break;
  }
  return true;
}
