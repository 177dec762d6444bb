//===- VerifyVariant.cpp - on which launches a variant is compared --------===//
#include "VerifierImpl.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Of a rewrite by itself.
static std::string keyOf(const KernelRewrite &rewrite) {
  Variant alone;
  alone.rewrites = {rewrite};
  return alone.key() + (rewrite.testedOnly ? " tested" : "");
}

std::optional<unsigned> Verifier::Impl::runsOfProof(const std::string &key) {
  std::lock_guard lock(provenMutex);
  auto it = proven.find(key);
  return it == proven.end() ? std::nullopt : std::optional(it->second);
}

llvm::Error Verifier::Impl::addTargets(const KernelRewrite &rewrite, std::vector<Target> &targets,
                                       std::vector<Target> &largeTargets, VerifyReport &report) const {
  for (unsigned w = 0; w < workloads.size(); ++w)
    for (unsigned l = 0; l < workloads[w].launches.size(); ++l) {
      const LaunchImage &launch = workloads[w].launches[l];
      if (launch.kernel != rewrite.originalSymbol)
        continue;
      llvm::Expected<ConcretePlan> plan = concretePlan(rewrite, launch);
      if (plan) {
        const bool someBlocks = w == large && !(options.textsOnLarge && rewrite.testedOnly);
        (someBlocks ? largeTargets : targets).push_back({w, l, std::move(*plan)});
        continue;
      }
      llvm::Error rest = llvm::handleErrors(plan.takeError(), [&](const NotApplicable &n) {
        report.notes.push_back("launch " + std::to_string(launch.sequence) + " of " + launch.name +
                               " keeps the original: " + n.reason);
      });
      if (rest)
        return rest;
    }
  return llvm::Error::success();
}

llvm::Expected<VerifyReport> Verifier::verify(const Variant &variant) {
  VerifyReport report;
  std::vector<Impl::Target> targets, large;
  std::vector<Impl::Target> known; // of what is proven
  unsigned knownRuns = 0;          // the most of any: rewrites may have been compared together
  std::set<std::string> compared;  // rewrites that small launches run
  for (const KernelRewrite &rewrite : variant.rewrites) {
    if (rewrite.plan.steps.empty())
      continue;
    const std::string key = keyOf(rewrite);
    const std::optional<unsigned> proof = impl->runsOfProof(key);
    knownRuns = std::max(knownRuns, proof.value_or(0));
    const size_t before = targets.size();
    if (llvm::Error e = impl->addTargets(rewrite, proof ? known : targets, proof ? known : large, report)) {
      report.verdict = Verdict::OverLimit;
      report.why = llvm::toString(std::move(e));
      return report;
    }
    if (targets.size() > before)
      compared.insert(key);
  }
  if (targets.empty() && large.empty() && !known.empty()) {
    report.verdict = Verdict::Correct;
    report.launches = unsigned(known.size());
    report.earlierRuns = knownRuns;
    return report;
  }
  if (targets.empty() && (large.empty() || !impl->options.comparedElsewhere)) {
    report.verdict = Verdict::NotApplicable;
    report.why = report.notes.empty() ? "no captured launch runs a rewritten kernel" : report.notes.front();
    return report;
  }
  auto checked = impl->check(variant.text, targets, large, std::move(report), variant.testedOnly());
  if (!checked || checked->verdict != Verdict::Correct)
    return checked;
  // Of which rewrite a launch was left out is not known.
  const bool allCompared = checked->launches == targets.size();
  if (allCompared) {
    std::lock_guard lock(impl->provenMutex);
    for (const std::string &key : compared)
      impl->proven.emplace(key, checked->runs);
  }
  checked->launches += unsigned(known.size());
  checked->earlierRuns = knownRuns;
  return checked;
}
