//===- LoopRewrites.cpp - which loops of launches can be replaced ---------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/ActionSpace/ProgramRewrites.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/LaunchIdioms.h"
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
  auto space = KernelSpace::create(
      device, [&](const KernelDecl &d) { return &d == decl; }, [](const KernelDecl &) { return LaunchHints(); });
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
  if (!step.kernel.besideOriginal || !step.kernel.enter.empty())
    step.refused = "the kernel is no part of this file, or has template arguments that are declared elsewhere";
  for (const Param &param : state.original->params)
    if (llvm::is_contained({"launch", "launchGrid", "launchBlock", "launchShared", "launchStream", "launches"},
                           param.name))
      step.refused = "the kernel's parameter '" + param.name + "' has a name that the new code needs";
  return step;
}

/// Why the loop cannot be replaced although its kernel is a step of an idiom; empty: it can.
std::string whyNot(const LaunchLoop &loop, const Step &step, const Program &host) {
  for (const LaunchSite &site : host.launches()) {
    if (!llvm::is_contained(loop.launches, site.begin) || site.symbol != step.kernel.originalSymbol)
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

/// Why the second kernel does not copy back what the first one, a stencil's step, has computed; empty: it does.
std::string whyNoCopy(const Step &step, const Step &copy) {
  if (!step.idiom.step || !copy.idiom.step || !copy.idiom.step->copies)
    return "it launches different kernels";
  const TimeStep &a = *step.idiom.step, &b = *copy.idiom.step;
  bool alike =
      a.fields.size() == b.fields.size() && a.dims.size() == b.dims.size() && a.inside == b.inside &&
      a.insideLast == b.insideLast && a.index == b.index &&
      llvm::all_of(b.constants, [&](const std::string &name) { return llvm::is_contained(a.constants, name); });
  if (!alike)
    return "it launches two kernels that deal with different cells";
  if (scopeOf(step.kernel.original) != scopeOf(copy.kernel.original))
    return "it launches kernels of different namespaces";
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
    std::set<std::string> kernels(loop.symbols.begin(), loop.symbols.end());
    bool copiesBack = loop.symbols.size() == 2 && kernels.size() == 2;
    if (why.empty() && kernels.size() > 1 && !copiesBack)
      why = llvm::formatv("line {0}: it launches different kernels", loop.line);
    if (why.empty() && llvm::any_of(loop.launches, [&](unsigned at) { return taken.count(at); }))
      why = llvm::formatv("line {0}: an outer loop is replaced", loop.line);
    std::vector<Step *> both;
    for (size_t i = 0; why.empty() && i < (copiesBack ? 2 : 1); ++i) {
      auto [it, added] = steps.try_emplace(loop.symbols[i]);
      if (added)
        it->second = lookAt(device, loop.symbols[i], strictFloat);
      both.push_back(&it->second);
      std::string reason = !both[i]->refused.empty() ? both[i]->refused : whyNot(loop, *both[i], host);
      if (reason.empty() && i == 1)
        reason = whyNoCopy(*both[0], *both[1]);
      if (!reason.empty())
        why = llvm::formatv("line {0}: {1}", loop.line, reason);
    }
    Step *step = both.empty() ? nullptr : both.front();
    auto same = llvm::find_if(found.rewrites, [&](const LoopRewrite &r) {
      return why.empty() && r.kernel.originalSymbol == step->kernel.originalSymbol;
    });
    if (same != found.rewrites.end() &&
        (same->copyBack ? same->copyBack->kernel.originalSymbol : "") != (copiesBack ? loop.symbols[1] : ""))
      why = llvm::formatv("line {0}: another loop launches {1} in another way", loop.line, step->kernel.original);
    if (!why.empty()) {
      found.notes.push_back(why + " (the loop's launches stay as they are)");
      continue;
    }
    taken.insert(loop.launches.begin(), loop.launches.end());
    if (same == found.rewrites.end()) {
      same = found.rewrites.insert(found.rewrites.end(), {step->kernel, step->idiom, {}, {}});
      if (copiesBack)
        same->copyBack = {both[1]->kernel, both[1]->idiom.step};
    }
    same->loops.push_back(std::move(loop));
  }
  return found;
}
