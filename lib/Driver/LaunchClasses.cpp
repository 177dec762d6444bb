//===- LaunchClasses.cpp - a kernel's small and large launches ------------===//
#include "LaunchClasses.h"
#include <algorithm>
#include <cmath>

using namespace optiml;

// An H100 holds 132 · 2048 threads.
static constexpr uint64_t halfOfAGpu = 1 << 17;
static constexpr double farApart = 8, leastShare = 0.05;

double optiml::launchCost(double launches, uint64_t threads) {
  return launches * double(std::max(threads, halfOfAGpu));
}

std::vector<ThreadRange> optiml::launchClasses(const std::map<uint64_t, double> &costs) {
  double all = 0;
  for (const auto &[threads, cost] : costs)
    all += cost;
  std::vector<ThreadRange> classes(1);
  double below = 0, own = 0; // cost of the classes before the last one, and of what is in that
  uint64_t previous = 0;
  for (const auto &[threads, cost] : costs) {
    const double above = all - below - own;
    if (previous && double(threads) >= farApart * double(previous) && own >= leastShare * all &&
        above >= leastShare * all) {
      // A launch between the two sizes belongs to the nearer one.
      const auto bound = uint64_t(std::sqrt(double(previous) * double(threads)));
      classes.back().most = bound;
      classes.push_back({bound + 1, ThreadRange::unlimited});
      below += own;
      own = 0;
    }
    own += cost;
    previous = threads;
  }
  return classes;
}
