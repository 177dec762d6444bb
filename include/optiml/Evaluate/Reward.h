//===- Reward.h - how a variant is scored -----------------------*- C++ -*-===//
//
// The formula, its weights and the guardrails are explained in docs/reward.md. The reward steers the search; the winner
// is chosen by time among variants that break no guardrail.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_REWARD_H
#define OPTIML_EVALUATE_REWARD_H

#include "optiml/Core/Interfaces.h"

namespace optiml {

struct RewardWeights {
  // Bottleneck proxies, each of a value between 0 and 1.
  double roofline = 0.04, sectors = 0.02, conflicts = 0.02, occupancy = 0.02;
  double guardrail = 0.5;         ///< taken off for every guardrail broken
  double slowerLaunch = 0.05;     ///< a launch may get this much slower, relatively
  double negligibleLaunch = 0.01; ///< launches with less than this share of the baseline's time are not looked at
  unsigned spillBytes = 0;        ///< spills may grow by this much
  double errorGrowth = 4;         ///< counter "error_ratio" (error / the original's own error) may reach this
};

/// Fills time.baseline, reward and guardrails of `variant`, which was measured on the same workload as `baseline`. Of
/// the baseline itself the reward is 0.
void score(Measurement &variant, const Measurement &baseline, const std::vector<double> &launchWeights,
           const RewardWeights &weights = {});

} // namespace optiml

#endif
