//===- Counters.cpp - hardware counters and what they mean ----------------===//
#include "optiml/Gpu/Counters.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace optiml::gpu;

const std::vector<CounterMetric> &optiml::gpu::counterMetrics() {
  static const std::vector<CounterMetric> metrics = {
#define METRIC(name, metric, tells, additive) {name, metric, tells, additive},
#include "Metrics.def"
  };
  return metrics;
}

const CounterMetric *optiml::gpu::findCounterMetric(const std::string &name) {
  for (const CounterMetric &metric : counterMetrics())
    if (name == metric.name)
      return &metric;
  return nullptr;
}

const char *optiml::gpu::counterPermissionHint() {
  return "the NVIDIA driver does not let this user read hardware counters: run as root or with CAP_SYS_ADMIN "
         "(containers: --cap-add=SYS_ADMIN), or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
}

namespace {

/// Values by our names; NaN when a metric was not read.
class Values {
public:
  explicit Values(const RawCounters &raw) : raw(raw) {}

  double operator[](const std::string &name) const {
    const CounterMetric *metric = findCounterMetric(name);
    auto it = metric ? raw.find(metric->metric) : raw.end();
    return it == raw.end() ? NAN : it->second;
  }

private:
  const RawCounters &raw;
};

/// A unit of the GPU and the counters any of which, near its peak, means that the unit is.
struct Unit {
  const char *name;
  std::vector<const char *> counters;
  bool arithmetic = false;
};

const std::vector<Unit> &units() {
  static const std::vector<Unit> all = {
      {"dram", {"dram"}},         {"l2", {"l2.slices", "l2.replies", "l2.port"}},
      {"atomic", {"l2.atomics"}}, {"l1", {"l1.wavefronts", "l1.requests", "l1.banks"}},
      {"issue", {"issue"}},       {"fp32", {"fp32"}, true},
      {"fp64", {"fp64"}, true},   {"tensor", {"tensor"}, true},
      {"int32", {"int32"}},       {"special", {"special"}, true},
  };
  return all;
}

/// Of the unit's peak, 0 to 1; NaN when none of its counters was read.
double utilization(const Unit &unit, const Values &values) {
  double most = NAN;
  for (const char *counter : unit.counters)
    most = std::fmax(most, values[counter] / 100); // fmax passes over NaN
  return std::isnan(most) ? most : std::clamp(most, 0.0, 1.0);
}

/// NaN when the divisor was not read, `ofNone` when there is none of it.
double ratio(double dividend, double divisor, double ofNone) {
  return divisor > 0 || std::isnan(divisor) ? dividend / divisor : ofNone;
}

std::string percent(double share) {
  char text[32];
  snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

/// Fills a diagnosis step by step.
class Diagnostician {
public:
  Diagnostician(const RawCounters &raw, const DiagnosisSettings &settings) : values(raw), settings(settings) {
    result.raw = raw;
    auto it = raw.find(kernelsKey);
    kernels = it == raw.end() ? 1 : std::max(1.0, it->second);
    seconds = values["duration"] * 1e-9;
  }

  KernelCounters run() {
    set("kernels", kernels);
    set("seconds", seconds);
    addUnits();
    addWarps();
    addAccesses();
    addRoofline();
    findBottleneck();
    return std::move(result);
  }

private:
  void set(const std::string &name, double value) {
    if (std::isfinite(value))
      result.counters[name] = value;
  }

  void addUnits() {
    for (const Unit &unit : units()) {
      double used = utilization(unit, values);
      if (std::isnan(used))
        continue;
      set(std::string(unit.name) + "_utilization", used);
      set(std::string("time.") + unit.name, used * seconds);
      if (!first || used > firstUse) {
        second = first;
        secondUse = firstUse;
        first = unit.name;
        firstUse = used;
      } else if (!second || used > secondUse) {
        second = unit.name;
        secondUse = used;
      }
    }
    if (first)
      set("speed_of_light", firstUse);
  }

  void addWarps() {
    double instructions = values["instructions"];
    set("warp_instructions", instructions);
    set("divergence", ratio(values["lanes"], 32 * instructions, 1));
    set("occupancy_achieved", values["occupancy"] / 100);
    double resident = values["resident"];
    if (!(resident > 0))
      return;
    for (const CounterMetric &metric : counterMetrics()) {
      std::string name = metric.name;
      if (name.rfind("stall.", 0) != 0)
        continue;
      double share = values[name] / resident;
      set(name, share);
      if (share > stallShare) {
        stallShare = share;
        stall = &metric;
      }
    }
  }

  void addAccesses() {
    set("dram_bytes", values["dram.bytes"]);
    set("l2_bytes", 32 * values["l2.sectors"]);
    set("l2_hit_rate", values["l2.hits"] / 100);
    set("local_memory_instructions", values["local.loads"] + values["local.stores"]);
    double shared = values["shared.requests"];
    set("shared_requests", shared);
    set("bank_conflicts_per_request", ratio(values["shared.conflicts"], shared, 0));
    // Lanes that ask for the same bytes ask for more than is moved: that is no more than efficient.
    double requests = 0, sectors = 0, useful = 0;
    for (std::string kind : {"global.load", "global.store"}) {
      double moved = values[kind + ".sectors"];
      double asked = values[kind + ".bytes"];
      requests += values[kind + ".requests"];
      sectors += moved;
      useful += std::isnan(asked) ? asked : std::min(asked, 32 * moved);
    }
    set("global_requests", requests);
    set("sectors_per_request", ratio(sectors, requests, 0));
    set("sector_efficiency", ratio(useful, 32 * sectors, 1));
  }

  /// As the performance model has it: what no variant could do without, that is compulsory traffic, and arithmetic. The
  /// traffic that was counted may be several times the compulsory one, so its share of the peak is no measure.
  void addRoofline() {
    double traffic = values["dram.bytes"];
    if (!(settings.compulsoryBytes > 0) || std::isnan(traffic))
      return;
    double share = traffic > 0 ? std::min(1.0, settings.compulsoryBytes / traffic) : 0;
    double roofline = share * values["dram"] / 100;
    for (const Unit &unit : units())
      if (unit.arithmetic)
        roofline = std::fmax(roofline, utilization(unit, values));
    set("roofline", std::fmin(roofline, 1));
  }

  /// The unit that is used most, if it is busy. Between 60 and 80 % it is not saturated on average, but it is in parts
  /// of the kernel, and those cannot be hidden: NVIDIA's analysis too looks at the unit then, and not at latency.
  void findBottleneck() {
    if (!first)
      return;
    if (firstUse >= settings.busy) {
      result.bottleneck = first;
      result.reason = std::string(first) + " is used to " + percent(firstUse) + " of its peak";
      if (second)
        result.reason += ", then " + std::string(second) + " to " + percent(secondUse);
      return;
    }
    // Without a time it is a comparison with NaN: latency.
    bool launch = seconds / kernels <= settings.launchSeconds;
    result.bottleneck = launch ? "launch" : "latency";
    result.reason = "no unit is used to " + percent(settings.busy) + " of its peak (" + first + " most, to " +
                    percent(firstUse) + ")";
    if (launch) {
      result.reason += ", and the kernel takes no longer than its launch";
      return;
    }
    if (stall)
      result.reason += "; warps spend " + percent(stallShare) + " of their time waiting for " + stall->tells;
    auto occupancy = result.counters.find("occupancy_achieved");
    if (occupancy != result.counters.end())
      result.reason += "; occupancy is " + percent(occupancy->second);
  }

  Values values;
  const DiagnosisSettings &settings;
  KernelCounters result;
  double kernels, seconds;
  const char *first = nullptr, *second = nullptr;
  double firstUse = 0, secondUse = 0;
  const CounterMetric *stall = nullptr;
  double stallShare = 0;
};

} // namespace

RawCounters optiml::gpu::combine(const std::vector<RawCounters> &kernels) {
  RawCounters result;
  const char *duration = findCounterMetric("duration")->metric;
  double count = 0;
  for (const RawCounters &kernel : kernels) {
    auto counted = kernel.find(kernelsKey); // what was combined before can be combined again
    count += counted == kernel.end() ? 1 : counted->second;
  }
  for (const CounterMetric &metric : counterMetrics()) {
    double sum = 0, weights = 0;
    bool found = false;
    for (const RawCounters &kernel : kernels) {
      auto value = kernel.find(metric.metric);
      // A share of no cycles at all is NaN: it says nothing.
      if (value == kernel.end() || !std::isfinite(value->second))
        continue;
      auto time = kernel.find(duration);
      double weight = metric.additive || time == kernel.end() || !(time->second > 0) ? 1 : time->second;
      sum += weight * value->second;
      weights += weight;
      found = true;
    }
    if (found)
      result[metric.metric] = metric.additive ? sum : sum / weights;
  }
  if (count > 0)
    result[kernelsKey] = count;
  return result;
}

KernelCounters optiml::gpu::diagnose(const RawCounters &raw, const DiagnosisSettings &settings) {
  return Diagnostician(raw, settings).run();
}
