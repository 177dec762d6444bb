//===- ExpertPolicy.cpp - what a CUDA programmer would try ----------------===//
#include "optiml/Propose/ExpertPolicy.h"
#include "llvm/ADT/STLExtras.h"
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
    if (rule.bottleneck.empty())
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
    result.reason = rule->reason.str();
    if (!rule->bottleneck.empty())
      result.reason = "bottleneck " + describeBottleneck(*m) + ": " + result.reason;
  }
  StringRef kernel = siteKernel(site.site);
  for (const ExpertOrder &order : expertOrders()) {
    if (site.transform != order.then)
      continue;
    bool waits = llvm::any_of(state.legal, [&](const ActionTemplate &other) {
      return other.transform == order.first && siteKernel(other.site) == kernel;
    });
    if (waits) {
      result.weight *= order.factor;
      result.reason += "; better after " + order.first.str();
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
  llvm::stable_sort(proposals, [](const Proposal &a, const Proposal &b) { return a.prior > b.prior; });
  if (proposals.size() > count)
    proposals.resize(count);
  return proposals;
}

std::vector<OpeningLine> ExpertPolicy::openingBook(const SearchState &root) {
  std::string bottleneck = root.measurement ? root.measurement->bottleneck : "";
  std::vector<OpeningLine> first, later;
  for (const ExpertLine &entry : expertLines()) {
    bool fits = entry.bottlenecks.empty() || llvm::is_contained(entry.bottlenecks, bottleneck);
    (fits ? first : later).push_back(entry.line);
  }
  first.insert(first.end(), later.begin(), later.end());
  return first;
}
