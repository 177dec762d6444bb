//===- VerifyVariant.cpp - on which launches a variant is compared --------===//
#include "VerifierImpl.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"

using namespace optiml;

/// Of a rewrite by itself.
static std::string keyOf(const KernelRewrite &rewrite) {
  Variant alone;
  alone.rewrites = {rewrite};
  return alone.key() + (rewrite.testedOnly ? " tested" : "");
}

llvm::Error Verifier::Impl::addTargets(unsigned workload, const KernelRewrite &rewrite, std::vector<Target> &into,
                                       VerifyReport &report) const {
  for (unsigned l = 0; l < workloads[workload].launches.size(); ++l) {
    const LaunchImage &launch = workloads[workload].launches[l];
    if (launch.kernel != rewrite.originalSymbol)
      continue;
    llvm::Expected<ConcretePlan> plan = concretePlan(rewrite, launch);
    if (plan) {
      into.push_back({workload, l, std::move(*plan)});
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

llvm::Expected<std::vector<Verifier::Impl::Compared>> Verifier::Impl::comparedBy(const Variant &variant,
                                                                                 VerifyReport &report) const {
  std::vector<Compared> all;
  for (const KernelRewrite &rewrite : variant.rewrites) {
    if (rewrite.plan.steps.empty())
      continue;
    Compared compared{&rewrite, keyOf(rewrite), {}, {}};
    for (unsigned w = 0; w < workloads.size(); ++w) {
      if (near.count(w))
        continue;
      const bool someBlocks = w == large && !(options.textsOnLarge && rewrite.testedOnly);
      if (llvm::Error e = addTargets(w, rewrite, someBlocks ? compared.large : compared.targets, report))
        return std::move(e);
    }
    if (!compared.targets.empty() || !compared.large.empty())
      all.push_back(std::move(compared));
  }
  return all;
}

llvm::Error Verifier::Impl::compareNow(Changed &changed, const Compared &rewrite, VerifyReport &report) {
  if (llvm::Error e = buildVerify(changed)) {
    report.verdict = Verdict::CompileError;
    report.why = llvm::toString(std::move(e));
    return llvm::Error::success();
  }
  Proof proof;
  if (rewrite.targets.empty()) {
    if (llvm::Error e = checkLargeAlone(changed, rewrite.large, report))
      return e;
    proof.leftOut = "its conditions hold for large launches only";
  } else {
    llvm::Expected<VerifyReport> compared = check(changed, rewrite);
    if (!compared)
      return compared.takeError();
    proof = {compared->launches, compared->runs,
             compared->verdict == Verdict::NotApplicable ? compared->why : std::string()};
    const bool isFinal = !compared->correct() && proof.leftOut.empty();
    report.add(std::move(*compared), isFinal);
  }
  if (report.correct())
    proofs.add(rewrite.key, std::move(proof));
  else if (report.verdict == Verdict::Untested && !(options.cancel && options.cancel->load()))
    proofs.addUnreached(rewrite.key, {report.why, report.missedKernels});
  return llvm::Error::success();
}

llvm::Expected<VerifyReport> Verifier::verify(const Variant &variant) {
  VerifyReport report;
  auto refused = [&](Verdict verdict, const std::string &why) {
    report.verdict = verdict;
    report.why = why;
    return report;
  };
  llvm::Expected<std::vector<Impl::Compared>> rewrites = impl->comparedBy(variant, report);
  if (!rewrites)
    return refused(Verdict::OverLimit, llvm::toString(rewrites.takeError()));
  if (rewrites->empty())
    return refused(Verdict::NotApplicable,
                   report.notes.empty() ? "no captured launch runs a rewritten kernel" : report.notes.front());
  for (const Impl::Compared &c : *rewrites)
    if (c.targets.empty() && !impl->options.comparedElsewhere) // the others do not speak for it
      return refused(Verdict::NotApplicable,
                     "nothing compares " + c.rewrite->original + ": its conditions hold for large launches only");
  report.verdict = Verdict::Correct;
  Impl::Changed changed{variant.text, impl->scratchDir(), "", "", false, false, {}};
  auto cleanup = llvm::scope_exit([&] { llvm::sys::fs::remove_directories(changed.folder); });
  std::map<std::string, const Impl::Compared *> open; // others may compare them before
  std::set<std::string> keys;
  for (const Impl::Compared &c : *rewrites) {
    open[c.key] = &c;
    keys.insert(c.key);
  }
  auto isUnreached = [&](const std::string &key) {
    const std::optional<Unreached> unreached = impl->proofs.unreached(key);
    if (unreached) {
      refused(Verdict::Untested, unreached->why);
      report.missedKernels = unreached->kernels;
    }
    return unreached.has_value();
  };
  if (llvm::any_of(keys, isUnreached))
    return report;
  while (const std::optional<std::string> key = impl->proofs.take(keys)) {
    auto done = llvm::scope_exit([&] { impl->proofs.putBack(*key); });
    if (isUnreached(*key)) // another thread has found that
      return report;
    if (llvm::Error e = impl->compareNow(changed, *open[*key], report))
      return std::move(e);
    if (!report.correct())
      return report;
    open.erase(*key);
  }
  for (const std::string &key : keys) {
    const Proof proof = *impl->proofs.find(key);
    if (open.count(key)) {
      report.launches += proof.launches;
      report.earlierRuns += proof.runs;
    }
    if (!proof.leftOut.empty())
      report = refused(Verdict::NotApplicable, proof.leftOut);
  }
  return report;
}
