//===- LoopRewrites.cpp - which loops of launches can be replaced ---------===//
#include "optiml/Driver/Emit.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/KernelSpace.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace optiml;

namespace {

/// One kernel that loops launch: its idiom, or why it has none.
struct Step {
  KernelRewrite kernel;
  LaunchIdiom idiom;
  std::string refused;
};

Step lookAt(const Program &device, const std::string &symbol, bool strictFloat) {
  Step step;
  const KernelDecl *decl = device.findKernel(symbol);
  if (!decl) {
    step.refused = "the kernel is not defined in this file";
    return step;
  }
  auto space = KernelSpace::create(device, [&](const KernelDecl &d) { return &d == decl; }, [](const KernelDecl &) { return LaunchHints(); });
  if (!space) {
    step.refused = llvm::toString(space.takeError());
    return step;
  }
  if (!(*space)->skipped().empty()) {
    step.refused = (*space)->skipped().front().reason;
    return step;
  }
  auto root = (*space)->root();
  if (!root) {
    step.refused = llvm::toString(root.takeError());
    return step;
  }
  const KernelState &state = static_cast<const TreeVariant &>(*root->variant).kernels.begin()->second;
  step.kernel = state.rewrite;
  auto idiom = recognizeLaunchIdiom(state);
  if (!idiom) {
    step.refused = decl->name + ": " + llvm::toString(idiom.takeError());
    return step;
  }
  step.idiom = std::move(*idiom);
  if (step.idiom.isFloat && strictFloat)
    step.refused = "sums of floating-point numbers keep their order (--optiml-fp=strict)";
  if (!step.kernel.besideOriginal)
    step.refused = "the kernel is no part of this file, or has template arguments that are declared elsewhere";
  for (const Param &param : state.original->params)
    if (llvm::is_contained({"launch", "launchGrid", "launchBlock", "launchShared", "launchStream", "launches"}, param.name))
      step.refused = "the kernel's parameter '" + param.name + "' has a name that the new code needs";
  return step;
}

/// Why the loop cannot be replaced although its kernel is a step of an idiom; empty: it can.
std::string whyNot(const LaunchLoop &loop, const Step &step, const Program &host) {
  for (const LaunchSite &site : host.launches()) {
    if (!llvm::is_contained(loop.launches, site.begin))
      continue;
    if (site.inTemplate)
      return "it stands in a template";
    if (site.arguments.size() != step.kernel.plan.steps[0].arguments.size())
      return "a launch relies on default arguments";
    if (site.topLevelBegin < step.kernel.insertAt)
      return "it stands before the kernel";
  }
  return "";
}

} // namespace

FoundLoops optiml::findLoopRewrites(const Program &device, const Program &host, bool strictFloat) {
  FoundLoops found;
  std::map<std::string, Step> steps;
  std::set<unsigned> taken;
  for (LaunchLoop &loop : findLaunchLoops(host)) {
    std::string why = loop.refused;
    if (why.empty() && loop.launches.empty())
      continue;
    if (why.empty() && llvm::any_of(loop.symbols, [&](const std::string &s) { return s != loop.symbols.front(); }))
      why = llvm::formatv("line {0}: it launches different kernels", loop.line);
    if (why.empty() && llvm::any_of(loop.launches, [&](unsigned at) { return taken.count(at); }))
      why = llvm::formatv("line {0}: an outer loop is replaced", loop.line);
    Step *step = nullptr;
    if (why.empty()) {
      auto [it, added] = steps.try_emplace(loop.symbols.front());
      if (added)
        it->second = lookAt(device, loop.symbols.front(), strictFloat);
      step = &it->second;
      std::string reason = step->refused.empty() ? whyNot(loop, *step, host) : step->refused;
      if (!reason.empty())
        why = llvm::formatv("line {0}: {1}", loop.line, reason);
    }
    if (!why.empty()) {
      found.notes.push_back(why + " (the loop's launches stay as they are)");
      continue;
    }
    taken.insert(loop.launches.begin(), loop.launches.end());
    auto same = llvm::find_if(found.rewrites, [&](const LoopRewrite &r) { return r.kernel.originalSymbol == step->kernel.originalSymbol; });
    if (same == found.rewrites.end())
      same = found.rewrites.insert(found.rewrites.end(), {step->kernel, step->idiom, {}});
    same->loops.push_back(std::move(loop));
  }
  return found;
}
