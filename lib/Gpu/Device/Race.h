//===- Race.h - timing variants against the original ------------*- C++ -*-===//
//
// One launch, made by the original and by one or more variants, in rounds: each round runs everyone once, in random
// order, on freshly restored inputs, timed by CUDA events; so drift of clocks and temperature meets all alike and every
// ratio is of two runs close together. Results of every timed run are compared with the reference.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_DEVICE_RACE_H
#define OPTIML_LIB_GPU_DEVICE_RACE_H

#include "Cases.h"
#include <random>

namespace optiml::gpu {

/// Times what is hopeless: a single run tells.
inline constexpr double farOff = 0.25;

struct RaceSettings {
  unsigned fewestRounds = 2; ///< even when time is up
  unsigned leastRounds = 5, mostRounds = 50;
  double precision = 0.01; ///< of the interval of the ratio, relatively
  double seconds = 0.15;   ///< of GPU time
  double hopeless = 0;     ///< stop when every runner's speed-up is below this
  bool cold = false;       ///< with an empty L2 cache
  double rival = 0;        ///< stop when every runner's speed-up is clearly below this
  bool sparing = false;    ///< the original need not run in every round where it takes much longer than the runners
};

struct RaceResult {
  std::vector<double> baseline;             ///< seconds, a round each
  std::vector<std::vector<double>> runners; ///< of each runner
  std::vector<std::string> differences;     ///< of each runner: a timed run gave something else, or empty
};

/// Runs `original` and `runners`, all made from case `c`'s launch. False: the device failed (Device::error, ::lost).
bool race(Device &device, Launches &launches, Cases &cases, const DeviceCase &c, const Run &original,
          const std::vector<Run> &runners, const RaceSettings &settings, std::mt19937 &random, RaceResult &result);

} // namespace optiml::gpu

#endif
