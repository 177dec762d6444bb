//===- Strategists.cpp - several ways to think, and who is heard ----------===//
#include "optiml/Propose/Strategists.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using llvm::StringRef;

static const Strategist table[] = {
    {"memory",
     "You look at the memory hierarchy: where each byte comes from and how often. Coalescing, vector accesses, staging in "
     "shared memory, reuse in registers, bank conflicts, traffic to L2 and DRAM.",
     "dram_*, l2_*, l1_*, sectors_per_request, sector_efficiency, bank_conflicts_per_request"},
    {"parallel",
     "You look at the parallel mapping: which thread does what. Block shapes, how many outputs a thread computes, loops "
     "that several threads could share, how many multiprocessors have work, occupancy, what waits for what.",
     "occupancy, latency, launch, stall.*, divergence"},
    {"instruction",
     "You look at the instruction level: what the inner loops execute. Unrolling, index arithmetic, loop control, constants "
     "that could be folded, registers and spills, independent work between dependent instructions.",
     "issue_*, int32_*, fp32_*, special_*, warp_instructions, local_memory_instructions"},
    {"numerics",
     "You look at the numbers: which precision and which functions are used, what is computed more often than its rounding "
     "asks for, sums that may be reordered, divisions that could be products.",
     "fp64_*, special_*, fp32_*, tensor_*"},
    {"algorithm",
     "You look at the algorithm: whether the same result needs less work, fewer passes over memory or fewer atomics. "
     "Hierarchical reductions, privatization, work that is done again and again.",
     "atomic_*, dram_bytes, launch, warp_instructions"},
};

static const Strategist everything = {
    "all", "You look at everything: memory hierarchy, parallel mapping, instructions, numerics and the algorithm.", "all counters"};

llvm::ArrayRef<Strategist> optiml::strategists() { return table; }
const Strategist &optiml::generalist() { return everything; }

namespace {
struct GateRow {
  const char *bottleneck;
  double weights[std::size(table)]; ///< memory, parallel, instruction, numerics, algorithm
};
} // namespace

// Who can do most against what. Only the order of magnitude matters: experience in the search corrects it.
static const GateRow gates[] = {
    {"dram", {3, 1, 0.5, 0.5, 1.5}},    {"l2", {3, 1.5, 0.5, 0.3, 1.5}},  {"l1", {3, 1.5, 1, 0.3, 1}},
    {"atomic", {1, 2, 0.5, 0.3, 3}},    {"issue", {1, 1, 3, 1, 1}},       {"int32", {0.5, 1, 3, 0.5, 1}},
    {"fp32", {1, 1, 2, 1.5, 1.5}},      {"fp64", {0.5, 1, 1, 3, 1}},      {"special", {0.5, 0.5, 2, 3, 1}},
    {"tensor", {1.5, 1, 1, 2, 1}},      {"latency", {1.5, 3, 1.5, 0.3, 1}}, {"launch", {0.5, 3, 0.5, 0.3, 2}},
};

double Gate::weight(const Strategist &strategist, StringRef bottleneck) const {
  double weight = 1;
  for (const GateRow &row : gates)
    for (size_t i = 0; i < std::size(table); ++i)
      if (bottleneck == row.bottleneck && StringRef(strategist.name) == table[i].name)
        weight = row.weights[i];
  return weight * fare(strategist.name);
}

std::vector<std::pair<const Strategist *, double>> Gate::choose(StringRef bottleneck, unsigned most, StringRef other,
                                                                double otherShare) const {
  std::vector<std::pair<const Strategist *, double>> chosen;
  double sum = 0, otherSum = 0;
  for (const Strategist &strategist : table) {
    sum += weight(strategist, bottleneck);
    otherSum += weight(strategist, other);
  }
  for (const Strategist &strategist : table)
    chosen.push_back({&strategist, (1 - otherShare) * weight(strategist, bottleneck) / sum +
                                       otherShare * weight(strategist, other) / otherSum});
  std::stable_sort(chosen.begin(), chosen.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  while (chosen.size() > 1 && (chosen.size() > std::max(1u, most) || chosen.back().second < 0.1))
    chosen.pop_back();
  double kept = 0;
  for (const auto &entry : chosen)
    kept += entry.second;
  for (auto &entry : chosen)
    entry.second /= kept;
  return chosen;
}

void Gate::update(const std::string &strategist, double outcome) {
  constexpr double rate = 0.5;
  fares[strategist] = std::clamp(fare(strategist) * std::exp(rate * (outcome - 0.5)), 0.2, 5.0);
}

double Gate::fare(const std::string &strategist) const {
  auto it = fares.find(strategist);
  return it == fares.end() ? 1 : it->second;
}

double Gate::outcomeOf(const Measurement &m, double secondsBefore) {
  bool usable = (m.verdict == Verdict::Correct || m.verdict == Verdict::Predicted) && m.time.seconds > 0;
  if (!usable || !(secondsBefore > 0))
    return 0;
  return std::clamp(0.5 + 0.5 * std::log2(secondsBefore / m.time.seconds), 0.0, 1.0);
}
