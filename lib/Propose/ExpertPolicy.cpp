//===- ExpertPolicy.cpp - what a CUDA programmer would try ----------------===//
#include "optiml/Propose/ExpertPolicy.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using llvm::StringRef;

/// Weight of a transform that no rule knows.
static constexpr double unknownWeight = 0.3;
/// A transform that was applied to a kernel before is less likely to help again.
static constexpr double repeated = 0.5;
/// How fast the prior falls along a site's values.
static constexpr double valueDecay = 0.8;

static const ExpertRule *ruleFor(StringRef transform, StringRef bottleneck) {
  const ExpertRule *general = nullptr;
  for (const ExpertRule &rule : expertRules()) {
    if (transform != rule.transform)
      continue;
    if (bottleneck == rule.bottleneck)
      return &rule;
    if (!*rule.bottleneck)
      general = &rule;
  }
  return general;
}

/// "l1 (82 % of the time)", as far as it is known.
static std::string describeBottleneck(const Measurement &m) {
  auto time = m.counters.find("time." + m.bottleneck);
  if (time == m.counters.end() || !(m.time.seconds > 0) || !std::isfinite(time->second))
    return m.bottleneck;
  return llvm::formatv("{0} ({1:f0} % of the time)", m.bottleneck, 100 * std::min(1.0, time->second / m.time.seconds))
      .str();
}

namespace {
struct Judgement {
  double weight;
  std::string reason;
};
} // namespace

static Judgement judge(const SearchState &state, const ActionTemplate &site) {
  const Measurement *m = state.measurement;
  std::string bottleneck = m ? m->bottleneck : "";
  Judgement result{unknownWeight, "legal here; nothing is known of when it helps"};
  if (const ExpertRule *rule = ruleFor(site.transform, bottleneck)) {
    result.weight = rule->weight;
    result.reason = *rule->bottleneck ? "bottleneck " + describeBottleneck(*m) + ": " + rule->reason : rule->reason;
  }
  StringRef kernel = siteKernel(site.site);
  for (const ExpertOrder &order : expertOrders()) {
    if (site.transform != order.then)
      continue;
    bool waits = std::any_of(state.legal.begin(), state.legal.end(), [&](const ActionTemplate &other) {
      return other.transform == order.first && siteKernel(other.site) == kernel;
    });
    if (waits) {
      result.weight *= order.factor;
      result.reason += std::string("; better after ") + order.first;
    }
  }
  for (const Action &done : state.variant->recipe)
    if (done.transform == site.transform && siteKernel(done.site) == kernel) {
      result.weight *= repeated;
      break;
    }
  return result;
}

llvm::Expected<std::vector<Proposal>> ExpertPolicy::propose(const SearchState &state, unsigned count) {
  std::vector<Proposal> proposals;
  for (const ActionTemplate &site : state.legal) {
    Judgement judgement = judge(state, site);
    double prior = judgement.weight;
    for (const Params &params : site.values) {
      proposals.push_back({{site.transform, site.site, params}, prior, judgement.reason});
      prior *= valueDecay;
    }
  }
  // Equal priors keep the order of the legal actions.
  std::vector<size_t> order(proposals.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return proposals[a].prior != proposals[b].prior ? proposals[a].prior > proposals[b].prior : a < b;
  });
  std::vector<Proposal> best;
  for (size_t i = 0; i < std::min<size_t>(count, order.size()); ++i)
    best.push_back(std::move(proposals[order[i]]));
  return best;
}

std::vector<OpeningLine> ExpertPolicy::openingBook(const SearchState &root) {
  std::string bottleneck = root.measurement ? root.measurement->bottleneck : "";
  std::vector<OpeningLine> first, later;
  for (const ExpertLine &entry : expertLines()) {
    bool fits = entry.bottlenecks.empty() ||
                std::find(entry.bottlenecks.begin(), entry.bottlenecks.end(), bottleneck) != entry.bottlenecks.end();
    (fits ? first : later).push_back(entry.line);
  }
  first.insert(first.end(), later.begin(), later.end());
  return first;
}
