//===- Strategists.cpp - several ways to think, and who is heard ----------===//
#include "optiml/Propose/Strategists.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using llvm::StringRef;

static const Strategist table[] = {
#define STRATEGIST(name, instruction, evidence) {name, instruction, evidence},
#include "Strategists.def"
};

static const Strategist everything = {
    "all", "You look at everything: memory hierarchy, parallel mapping, instructions, numerics and the algorithm.",
    "all counters"};

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
#define GATE(bottleneck, ...) {bottleneck, {__VA_ARGS__}},
#include "Strategists.def"
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
  double kept = llvm::sum_of(llvm::make_second_range(chosen), 0.0);
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
