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

llvm::Expected<std::vector<Verifier::Impl::Compared>> Verifier::Impl::comparedBy(const Variant &variant,
                                                                                 VerifyReport &report) const {
  std::vector<Compared> all;
  for (const KernelRewrite &rewrite : variant.rewrites) {
    if (rewrite.plan.steps.empty())
      continue;
    Compared compared{&rewrite, keyOf(rewrite), {}, {}};
    for (unsigned w = 0; w < workloads.size(); ++w)
      for (unsigned l = 0; l < workloads[w].launches.size(); ++l) {
        const LaunchImage &launch = workloads[w].launches[l];
        if (launch.kernel != rewrite.originalSymbol)
          continue;
        llvm::Expected<ConcretePlan> plan = concretePlan(rewrite, launch);
        if (plan) {
          const bool someBlocks = w == large && !(options.textsOnLarge && rewrite.testedOnly);
          (someBlocks ? compared.large : compared.targets).push_back({w, l, std::move(*plan)});
          continue;
        }
        llvm::Error rest = llvm::handleErrors(plan.takeError(), [&](const NotApplicable &n) {
          report.notes.push_back("launch " + std::to_string(launch.sequence) + " of " + launch.name +
                                 " keeps the original: " + n.reason);
        });
        if (rest)
          return std::move(rest);
      }
    if (!compared.targets.empty() || !compared.large.empty())
      all.push_back(std::move(compared));
  }
  return all;
}

llvm::Error Verifier::Impl::compareNow(Changed &changed, llvm::ArrayRef<Compared *> rewrites, VerifyReport &report) {
  if (llvm::Error e = buildVerify(changed)) {
    report.verdict = Verdict::CompileError;
    report.why = llvm::toString(std::move(e));
    return llvm::Error::success();
  }
  std::vector<Target> targets, large, largeAlone;
  bool thorough = false;
  for (const Compared *c : rewrites) {
    llvm::append_range(targets, c->targets);
    llvm::append_range(c->targets.empty() ? largeAlone : large, c->large);
    thorough |= c->rewrite->testedOnly;
  }
  bool allCompared = true;
  if (!targets.empty()) {
    llvm::Expected<VerifyReport> compared = check(changed, targets, large, thorough);
    if (!compared)
      return compared.takeError();
    // Of which rewrite a launch was left out is not known.
    allCompared = compared->launches == targets.size();
    const bool isFinal = !compared->correct();
    report.add(std::move(*compared), isFinal);
  }
  if (!largeAlone.empty() && report.correct())
    if (llvm::Error e = checkLargeAlone(changed, largeAlone, report))
      return e;
  if (report.correct() && allCompared)
    for (const Compared *c : rewrites)
      proofs.add(c->key, report.runs);
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
  std::set<std::string> open;
  for (const Impl::Compared &c : *rewrites)
    open.insert(c.key);
  for (;;) {
    const std::set<std::string> ours = impl->proofs.take(open);
    if (ours.empty())
      break;
    auto done = llvm::scope_exit([&] { impl->proofs.putBack(ours); });
    std::vector<Impl::Compared *> now;
    for (Impl::Compared &c : *rewrites)
      if (ours.count(c.key))
        now.push_back(&c);
    if (llvm::Error e = impl->compareNow(changed, now, report))
      return std::move(e);
    if (!report.correct())
      return report;
    for (const std::string &key : ours)
      open.erase(key);
  }
  for (const Impl::Compared &c : *rewrites) {
    if (const std::optional<unsigned> runs = impl->proofs.find(c.key); runs && open.count(c.key)) {
      report.launches += unsigned(c.targets.size());
      report.earlierRuns = std::max(report.earlierRuns, *runs); // they may have been compared together
    }
    if (c.targets.empty())
      report = refused(Verdict::NotApplicable, "its conditions hold for large launches only");
  }
  return report;
}
