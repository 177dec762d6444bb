//===- CountersTest.cpp - hardware counters and what they mean ------------===//
#include "optiml/Gpu/Counters.h"
#include "optiml/Gpu/Cupti.h"
#include "optiml/Gpu/MetricPlan.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace optiml::gpu;

/// A raw map by our short names.
static RawCounters rawOf(const std::map<std::string, double> &values) {
  RawCounters raw;
  for (const auto &[name, value] : values) {
    const CounterMetric *metric = findCounterMetric(name);
    EXPECT_TRUE(metric) << name;
    if (metric)
      raw[metric->metric] = value;
  }
  return raw;
}

/// A matrix product of 1024³ with 16×16 threads and no tiles, as a large GPU runs it.
static std::map<std::string, double> naiveProduct() {
  return {{"duration", 427000},
          {"dram.bytes", 13e6},
          {"dram", 0.9},
          {"l2.sectors", 9.1e6},
          {"l2.slices", 12.5},
          {"l2.replies", 14.0},
          {"l2.port", 17.2},
          {"l2.hits", 95.5},
          {"l2.atomics", 0},
          {"l1.wavefronts", 76.1},
          {"l1.requests", 88.4},
          {"l1.banks", 49.9},
          {"issue", 43.0},
          {"fp32", 14.2},
          {"fp64", 0},
          {"tensor", 0},
          {"int32", 6.1},
          {"special", 0.02},
          {"instructions", 1.4e8},
          {"lanes", 32 * 1.4e8},
          {"occupancy", 97.2},
          {"resident", 6.0e9},
          {"stall.long_scoreboard", 2.4e9},
          {"stall.lg_throttle", 1.8e9},
          {"stall.barrier", 0},
          {"shared.conflicts", 0},
          {"shared.requests", 0},
          {"local.loads", 0},
          {"local.stores", 0},
          {"global.load.requests", 67108864},
          {"global.load.sectors", 184549376},
          {"global.load.bytes", 67108864.0 * 32 * 4},
          {"global.store.requests", 32768},
          {"global.store.sectors", 131072},
          {"global.store.bytes", 4194304}};
}

TEST(Counters, MetricsHaveNamesOfTheirOwn) {
  std::set<std::string> names, metrics;
  for (const CounterMetric &metric : counterMetrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(metrics.insert(metric.metric).second) << metric.metric;
    bool sum = std::string(metric.metric).ends_with(".sum");
    EXPECT_EQ(metric.additive, sum) << metric.metric;
  }
  EXPECT_FALSE(findCounterMetric("nothing"));
}

TEST(Counters, ABusyUnitIsTheBottleneck) {
  KernelCounters k = diagnose(rawOf(naiveProduct()));
  EXPECT_EQ(k.bottleneck, "l1");
  EXPECT_EQ(k.reason, "l1 is used to 88 % of its peak, then issue to 43 %");
  EXPECT_NEAR(k.counters.at("l1_utilization"), 0.884, 1e-9);
  EXPECT_NEAR(k.counters.at("l2_utilization"), 0.172, 1e-9);
  EXPECT_NEAR(k.counters.at("time.l1"), 0.884 * 427e-6, 1e-12);
  EXPECT_NEAR(k.counters.at("speed_of_light"), 0.884, 1e-9);
  EXPECT_NEAR(k.counters.at("seconds"), 427e-6, 1e-12);
  EXPECT_EQ(k.counters.at("dram_bytes"), 13e6);
  EXPECT_EQ(k.counters.at("l2_bytes"), 32 * 9.1e6);
  EXPECT_NEAR(k.counters.at("stall.long_scoreboard"), 0.4, 1e-9);
  EXPECT_NEAR(k.counters.at("divergence"), 1, 1e-9);
  EXPECT_NEAR(k.counters.at("occupancy_achieved"), 0.972, 1e-9);
  EXPECT_EQ(k.counters.at("bank_conflicts_per_request"), 0);
  EXPECT_EQ(k.counters.at("local_memory_instructions"), 0);
  // Lanes that share an element count as no better than fully used sectors.
  EXPECT_NEAR(k.counters.at("sector_efficiency"), 1, 1e-9);
  EXPECT_NEAR(k.counters.at("sectors_per_request"), (184549376.0 + 131072) / (67108864 + 32768), 1e-9);
}

TEST(Counters, NoBusyUnitIsLatency) {
  auto values = naiveProduct();
  values["l1.wavefronts"] = 31;
  values["l1.requests"] = 22;
  values["occupancy"] = 12.5;
  KernelCounters k = diagnose(rawOf(values));
  EXPECT_EQ(k.bottleneck, "latency");
  EXPECT_EQ(k.reason,
            "no unit is used to 60 % of its peak (l1 most, to 50 %); warps spend 40 % of their time waiting for "
            "global and local memory; occupancy is 12 %");
}

TEST(Counters, AnIdleShortKernelIsALaunch) {
  auto values = naiveProduct();
  for (const char *l1 : {"l1.wavefronts", "l1.requests", "l1.banks"})
    values[l1] = 2;
  values["duration"] = 1800;
  values["issue"] = 3;
  EXPECT_EQ(diagnose(rawOf(values)).bottleneck, "launch");
  values["duration"] = 5400;
  RawCounters longer = rawOf(values);
  EXPECT_EQ(diagnose(longer).bottleneck, "latency");
  longer[kernelsKey] = 3; // three of 1.8 µs
  EXPECT_EQ(diagnose(longer).bottleneck, "launch");
}

TEST(Counters, EachUnitHasItsWord) {
  const std::vector<std::pair<const char *, const char *>> expected = {
      {"dram", "dram"},         {"l2.slices", "l2"}, {"l2.replies", "l2"},   {"l2.port", "l2"},
      {"l2.atomics", "atomic"}, {"issue", "issue"},  {"fp32", "fp32"},       {"fp64", "fp64"},
      {"tensor", "tensor"},     {"int32", "int32"},  {"special", "special"}, {"l1.banks", "l1"}};
  for (const auto &[counter, word] : expected) {
    auto values = naiveProduct();
    values[counter] = 100.3; // counters of different passes: a little above the peak happens
    KernelCounters k = diagnose(rawOf(values));
    EXPECT_EQ(k.bottleneck, word) << counter;
    EXPECT_EQ(k.counters.at(std::string(word) + "_utilization"), 1) << counter;
  }
}

TEST(Counters, AccessesThatWasteAreSeen) {
  auto values = naiveProduct();
  // A column of a row-major matrix: every lane has a sector to itself, of which it uses 4 bytes.
  values["global.load.requests"] = 1000;
  values["global.load.sectors"] = 32000;
  values["global.load.bytes"] = 128000;
  values["global.store.requests"] = 1000;
  values["global.store.sectors"] = 4000;
  values["global.store.bytes"] = 128000;
  // Stride 32 in shared memory: 31 conflicts an access; half of the lanes switched off.
  values["shared.requests"] = 2000;
  values["shared.conflicts"] = 62000;
  values["lanes"] = 16 * 1.4e8;
  values["local.loads"] = 70;
  values["local.stores"] = 30;
  KernelCounters k = diagnose(rawOf(values));
  EXPECT_NEAR(k.counters.at("sector_efficiency"), 256000.0 / (32 * 36000), 1e-9);
  EXPECT_NEAR(k.counters.at("sectors_per_request"), 18, 1e-9);
  EXPECT_NEAR(k.counters.at("bank_conflicts_per_request"), 31, 1e-9);
  EXPECT_NEAR(k.counters.at("divergence"), 0.5, 1e-9);
  EXPECT_EQ(k.counters.at("local_memory_instructions"), 100);
}

TEST(Counters, TheRooflineKnowsWasteFromWork) {
  auto values = naiveProduct();
  values["dram"] = 92;
  values["dram.bytes"] = 4e9;
  EXPECT_FALSE(diagnose(rawOf(values)).counters.contains("roofline"));
  DiagnosisSettings settings;
  settings.compulsoryBytes = 1e9; // every byte is moved four times
  EXPECT_NEAR(diagnose(rawOf(values), settings).counters.at("roofline"), 0.23, 1e-9);
  settings.compulsoryBytes = 4.2e9;
  EXPECT_NEAR(diagnose(rawOf(values), settings).counters.at("roofline"), 0.92, 1e-9);
  values["dram"] = 3;
  values["fp32"] = 71;
  EXPECT_NEAR(diagnose(rawOf(values), settings).counters.at("roofline"), 0.71, 1e-9);
}

TEST(Counters, WhatWasNotReadIsNotTold) {
  KernelCounters nothing = diagnose({});
  EXPECT_EQ(nothing.bottleneck, "");
  EXPECT_FALSE(nothing.counters.contains("sector_efficiency"));
  EXPECT_FALSE(nothing.counters.contains("divergence"));
  EXPECT_FALSE(nothing.counters.contains("bank_conflicts_per_request"));
  KernelCounters little = diagnose(rawOf({{"duration", 1e6}, {"issue", 80}}));
  EXPECT_EQ(little.bottleneck, "issue");
  EXPECT_EQ(little.reason, "issue is used to 80 % of its peak");
  EXPECT_FALSE(little.counters.contains("dram_utilization"));
  for (const auto &[name, value] : little.counters)
    EXPECT_TRUE(std::isfinite(value)) << name;
}

TEST(Counters, KernelsOfALaunchCombine) {
  RawCounters one = rawOf({{"duration", 3000}, {"dram.bytes", 100}, {"dram", 80}});
  RawCounters two = rawOf({{"duration", 1000}, {"dram.bytes", 50}, {"dram", 40}, {"l2.hits", 50}});
  RawCounters idle = rawOf({{"duration", 1000}, {"dram.bytes", 0}, {"l2.hits", NAN}});
  RawCounters both = combine(std::vector<RawCounters>{one, two, idle});
  EXPECT_EQ(both[findCounterMetric("duration")->metric], 5000);
  EXPECT_EQ(both[findCounterMetric("dram.bytes")->metric], 150);
  EXPECT_EQ(both[findCounterMetric("dram")->metric], 70);
  EXPECT_EQ(both[findCounterMetric("l2.hits")->metric], 50);
  EXPECT_EQ(both[kernelsKey], 3);
  EXPECT_EQ(combine(std::vector<RawCounters>{both, one})[kernelsKey], 4);
  EXPECT_TRUE(combine(std::vector<RawCounters>{}).empty());
}

/// Null when CUPTI is not installed.
static std::unique_ptr<MetricPlan> planFor(const char *chip) {
  std::string why;
  std::unique_ptr<MetricPlan> plan = MetricPlan::create(chip, why);
  EXPECT_TRUE(plan) << why;
  return plan;
}

// CUPTI opens its own libraries in a way that the address sanitizer ends the program for.
#if defined(__SANITIZE_ADDRESS__)
static constexpr bool sanitized = true;
#elif defined(__has_feature)
static constexpr bool sanitized = __has_feature(address_sanitizer);
#else
static constexpr bool sanitized = false;
#endif

class MetricPlanTest : public testing::Test {
protected:
  void SetUp() override {
    std::string missing;
    if (sanitized)
      GTEST_SKIP() << "CUPTI does not run under the address sanitizer";
    if (!Cupti::get(missing))
      GTEST_SKIP() << missing;
  }
};

TEST_F(MetricPlanTest, AllMetricsInFewPasses) {
  const std::vector<std::pair<const char *, size_t>> chips = {{"GH100", 7}, {"GA100", 8}, {"GA102", 8}, {"AD102", 8},
                                                              {"TU102", 8}, {"GB100", 8}, {"GB202", 8}};
  for (const auto &[chip, passes] : chips) {
    std::unique_ptr<MetricPlan> plan = planFor(chip);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->chip(), chip);
    EXPECT_EQ(plan->metrics().size(), counterMetrics().size()) << chip;
    EXPECT_TRUE(plan->leftOut().empty()) << chip << ": " << plan->leftOut().front();
    EXPECT_GE(plan->passes(), 1u) << chip;
    EXPECT_LE(plan->passes(), passes) << chip;
    EXPECT_FALSE(plan->configImage().empty()) << chip;
  }
}

TEST_F(MetricPlanTest, MetricsThatAChipLacksAreLeftOut) {
  // Memory of its own is what a system on a chip has not.
  std::unique_ptr<MetricPlan> plan = planFor("GA10B");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->leftOut(),
            (std::vector<std::string>{findCounterMetric("dram.bytes")->metric, findCounterMetric("dram")->metric}));
  EXPECT_EQ(plan->metrics().size() + 2, counterMetrics().size());
  EXPECT_LE(plan->passes(), 8u);
}

TEST_F(MetricPlanTest, UnknownChipsAreNamed) {
  std::string why;
  EXPECT_FALSE(MetricPlan::create("NV1", why));
  EXPECT_EQ(why, "this CUPTI does not know the GPU NV1");
}
