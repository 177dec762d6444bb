//===- Reward.cpp - how a variant is scored -------------------------------===//
#include "optiml/Evaluate/Reward.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace optiml;

static double counter(const Measurement &m, const char *name, double absent) {
  auto it = m.counters.find(name);
  return it == m.counters.end() || !std::isfinite(it->second) ? absent : it->second;
}

/// The proxies' weighted sum: what tells two variants of equal time apart.
static double proxies(const Measurement &m, const RewardWeights &w) {
  double roofline = std::clamp(counter(m, "roofline", 0), 0.0, 1.0);
  double sectors = std::clamp(counter(m, "sector_efficiency", 1), 0.0, 1.0);
  double conflicts = 1 / (1 + std::max(0.0, counter(m, "bank_conflicts_per_request", 0)));
  // Beyond half of the warps, more of them hide no more latency.
  double occupancy = std::min(1.0, 2 * std::max(0.0, m.resources.occupancy));
  return w.roofline * roofline + w.sectors * sectors + w.conflicts * conflicts + w.occupancy * occupancy;
}

static void checkGuardrails(Measurement &variant, const Measurement &baseline, const std::vector<double> &launchWeights,
                            const RewardWeights &w) {
  size_t launches = std::min(variant.time.perLaunch.size(), baseline.time.perLaunch.size());
  for (size_t i = 0; i < launches; ++i) {
    double before = baseline.time.perLaunch[i], after = variant.time.perLaunch[i];
    double weight = i < launchWeights.size() ? launchWeights[i] : 1;
    // Written so that NaN counts as slower.
    bool fine = after <= before * (1 + w.slowerLaunch) || weight * after < w.negligibleLaunch * baseline.time.seconds;
    if (!fine)
      variant.guardrails.push_back(llvm::formatv("launch {0} became {1:f2} times slower", i + 1, after / before).str());
  }
  unsigned spillsBefore = baseline.resources.spillLoads + baseline.resources.spillStores;
  unsigned spillsAfter = variant.resources.spillLoads + variant.resources.spillStores;
  // A time that was measured has them in it.
  if (variant.time.predicted && spillsAfter > spillsBefore + w.spillBytes)
    variant.guardrails.push_back(
        llvm::formatv("register spills grew from {0} to {1} bytes", spillsBefore, spillsAfter).str());
  double error = counter(variant, "error_ratio", 0);
  if (error > w.errorGrowth)
    variant.guardrails.push_back(llvm::formatv("the error is {0:f1} times the original's", error).str());
}

void optiml::score(Measurement &variant, const Measurement &baseline, const std::vector<double> &launchWeights,
                   const RewardWeights &weights) {
  variant.time.baseline = baseline.time.seconds;
  variant.guardrails.clear();
  variant.reward = 0;
  bool timed = variant.time.seconds > 0 && baseline.time.seconds > 0;
  if (!timed)
    return;
  checkGuardrails(variant, baseline, launchWeights, weights);
  variant.reward = std::log2(baseline.time.seconds / variant.time.seconds) + proxies(variant, weights) -
                   proxies(baseline, weights) - weights.guardrail * double(variant.guardrails.size());
}
