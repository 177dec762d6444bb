//===- FuseRewrites.cpp - which launches can be fused ---------------------===//
#include "LaunchSequence.h"
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/ActionSpace/ProgramRewrites.h"
#include "optiml/ActionSpace/Registry.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/FuseKernels.h"
#include "optiml/Transforms/Transform.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

// One kernel with more bodies than this has no registers left; and each more makes one more trial.
static constexpr size_t mostParts = 8;

namespace {

class FusionFinder {
public:
  FusionFinder(const Program &device, const Program &host, bool strictFloat,
               const std::function<bool(const std::string &)> &wanted, const SameGeometry &alike, bool overRows)
      : device(device), host(host), strictFloat(strictFloat), wanted(wanted), alike(alike), overRows(overRows) {}
  FoundFusions run();

private:
  const Program &device, &host;
  bool strictFloat;
  const std::function<bool(const std::string &)> &wanted;
  const SameGeometry &alike;
  bool overRows;
  std::unique_ptr<KernelSpace> space;
  FoundFusions found;
  std::set<std::string> names;

  const LaunchSite &site(unsigned index) const { return host.launches()[index]; }
  llvm::Expected<const KernelState *> stateOf(const LaunchSite &site) const;
  /// Of a launch: a kernel whose blocks have a row each, as the work of one thread a row, and what its launch must be.
  struct RowKernel {
    std::shared_ptr<Kernel> tree;
    std::vector<Condition> conditions;
  };
  llvm::Expected<RowKernel> threadPerRow(const KernelState &state, const LaunchSite &site) const;
  llvm::Expected<FusedLaunches> fuseBlocksOverRows(llvm::ArrayRef<unsigned> sites, const FusionCandidate &candidate,
                                                   std::vector<KernelPart> parts, const std::string &name) const;
  llvm::Expected<FusionCandidate> fuse(const LaunchRun &run, llvm::ArrayRef<unsigned> sites);
  std::string freshName(const std::vector<KernelRewrite> &parts) const;
  void look(const LaunchRun &run, llvm::ArrayRef<unsigned> sites);
  llvm::Expected<FusionCandidate> begin(llvm::ArrayRef<unsigned> sites) const;
  llvm::Expected<FusionCandidate> fuseInBlocks(const LaunchRun &run, size_t first, size_t count);
  llvm::Expected<FusedLaunches> threadsOf(llvm::ArrayRef<unsigned> sites, size_t first,
                                          std::vector<SequenceLaunch> launches, const SameGeometry &same,
                                          const std::string &name) const;
  bool lookForBlocks(const LaunchRun &run, size_t &first, size_t &count);
};

} // namespace

/// The kernel that is launched, before any rewrite.
llvm::Expected<const KernelState *> FusionFinder::stateOf(const LaunchSite &site) const {
  const KernelDecl *decl = device.findKernel(site.symbol);
  if (!decl)
    return notApplicable("{0} is not defined in this file", site.kernel);
  if (!wanted(decl->name))
    return notApplicable("{0} is left alone (--optiml-kernel)", decl->name);
  const KernelState *state = space->kernel(decl->name);
  if (state && state->rewrite.originalSymbol != decl->symbol) // an overload
    state = nullptr;
  for (const KernelSpace::Skipped &skipped : space->skipped())
    if (!state && skipped.kernel == decl->name)
      return notApplicable("{0} cannot be read: {1}", decl->name, skipped.reason);
  if (!state || !state->rewrite.besideOriginal || !state->rewrite.enter.empty())
    return notApplicable("{0} is no part of this file, or has template arguments that are declared elsewhere",
                         decl->name);
  if (site.topLevelBegin < state->rewrite.insertAt)
    return notApplicable("its launch stands before {0}", decl->name);
  for (const Param &param : state->original->params)
    if (llvm::StringRef(param.name).starts_with("launch"))
      return notApplicable("the parameter '{0}' of {1} has a name that the new code needs", param.name, decl->name);
  if (unqualified(decl->name).starts_with("launch"))
    return notApplicable("{0} has a name that the new code needs", decl->name);
  return state;
}

std::string FusionFinder::freshName(const std::vector<KernelRewrite> &parts) const {
  std::string base;
  for (const KernelRewrite &part : parts) {
    std::string name = identifierOf(part.original);
    if (base.size() + name.size() < 80)
      base += name + "_";
  }
  std::string name = base + "fused";
  for (unsigned i = 2; host.text().find(name) != std::string::npos || names.count(name); ++i)
    name = base + "fused" + std::to_string(i);
  return name;
}

/// How many blocks there are becomes a last parameter.
llvm::Expected<FusionFinder::RowKernel> FusionFinder::threadPerRow(const KernelState &state,
                                                                   const LaunchSite &site) const {
  KernelState own = state;
  own.hints.block = site.block;
  own.hints.strictFloat = strictFloat;
  auto made = findTransform("thread-per-block")->apply(own, "", {});
  if (!made)
    return made.takeError();
  RowKernel result{made->tree->clone(), made->rewrite.conditions};
  Kernel &kernel = *result.tree;
  Param rows;
  rows.name = optiml::freshName(kernel, "rows");
  rows.type = Type::makeInt();
  kernel.params.push_back(rows);
  kernel.body = block({ifStmt(lessThan(globalIndexExpr(0), var(rows.name, rows.type)), kernel.body)});
  return result;
}

llvm::Expected<FusedLaunches> FusionFinder::fuseBlocksOverRows(llvm::ArrayRef<unsigned> sites,
                                                               const FusionCandidate &candidate,
                                                               std::vector<KernelPart> parts,
                                                               const std::string &name) const {
  std::vector<RowKernel> made(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!threadsWorkTogether(*parts[i].tree))
      continue;
    auto row = threadPerRow(candidate.parts[i], site(sites[i]));
    if (!row)
      return row.takeError();
    made[i] = std::move(*row);
    parts[i].tree = made[i].tree.get();
    parts[i].arguments.push_back(site(sites[i]).configAt(0)); // the number of blocks, as it may be written elsewhere
  }
  auto fused = fuseOverRows(parts, name, strictFloat);
  for (size_t i = 0; fused && i < parts.size(); ++i)
    llvm::append_range(fused->kernel.launches[i], made[i].conditions);
  return fused;
}

/// The launches with their kernels, before these are fused.
llvm::Expected<FusionCandidate> FusionFinder::begin(llvm::ArrayRef<unsigned> sites) const {
  FusionCandidate candidate;
  Fusion &fusion = candidate.fusion;
  for (unsigned index : sites) {
    auto state = stateOf(site(index));
    if (!state)
      return state.takeError();
    candidate.parts.push_back(**state);
    fusion.parts.push_back((*state)->rewrite);
    fusion.launches.push_back(site(index).begin);
    if (scopeOf(fusion.parts.back().original) != scopeOf(fusion.parts.front().original))
      return notApplicable("the kernels are in different namespaces");
  }
  for (unsigned index : sites)
    for (const KernelRewrite &part : fusion.parts)
      if (site(index).topLevelBegin < part.insertAt)
        return notApplicable("a launch stands before {0}", part.original);
  return candidate;
}

/// `first`, or what `next` makes where there is none; where neither is, why the first is not.
static llvm::Expected<FusedLaunches> orElse(llvm::Expected<FusedLaunches> first,
                                            llvm::function_ref<llvm::Expected<FusedLaunches>()> next) {
  if (first)
    return first;
  auto second = next();
  llvm::consumeError(second ? first.takeError() : second.takeError());
  return second ? std::move(second) : std::move(first);
}

/// `sites`: of the run, as they follow one another.
llvm::Expected<FusionCandidate> FusionFinder::fuse(const LaunchRun &run, llvm::ArrayRef<unsigned> sites) {
  std::set<std::string> dead;
  for (const auto &[name, last] : run.lastUses)
    if (last < site(sites.back()).end)
      dead.insert(name);
  auto begun = begin(sites);
  if (!begun)
    return begun;
  FusionCandidate &candidate = *begun;
  Fusion &fusion = candidate.fusion;
  std::vector<KernelPart> parts;
  for (size_t i = 0; i < sites.size(); ++i)
    parts.push_back({candidate.parts[i].original.get(), site(sites[i]).arguments, dead, {}});
  const std::string name = freshName(fusion.parts);
  const bool sameThreads = llvm::all_of(sites, [&](unsigned index) { return alike(site(sites[0]), site(index)); });
  auto fused = sameThreads ? fuseKernels(parts, name, strictFloat)
                           : llvm::Expected<FusedLaunches>(notApplicable("it has another grid or block"));
  fused = orElse(std::move(fused), [&] { return fuseOverElements(parts, name, strictFloat); });
  if (overRows)
    fused = orElse(std::move(fused), [&] {
      const bool together = llvm::any_of(parts, [](const KernelPart &part) { return threadsWorkTogether(*part.tree); });
      return together ? fuseBlocksOverRows(sites, candidate, parts, name) : fuseOverRows(parts, name, strictFloat);
    });
  if (!fused)
    return fused.takeError();
  fusion.kernel = std::move(fused->kernel);
  candidate.fused = std::move(fused->state);
  return candidate;
}

/// Launches of the sites from `first` on, as one whose threads do what theirs did.
llvm::Expected<FusedLaunches> FusionFinder::threadsOf(llvm::ArrayRef<unsigned> sites, size_t first,
                                                      std::vector<SequenceLaunch> launches, const SameGeometry &same,
                                                      const std::string &name) const {
  for (unsigned i = 0; i < launches.size(); ++i)
    while (!same(site(sites[first + launches[i].like]), site(sites[first + i])))
      ++launches[i].like;
  return fuseInThreads(launches, name, strictFloat);
}

/// So many launches of the run as one in which a block has a row.
llvm::Expected<FusionCandidate> FusionFinder::fuseInBlocks(const LaunchRun &run, size_t first, size_t count) {
  auto candidate = begin(llvm::ArrayRef(run.sites).slice(first, count));
  if (!candidate)
    return candidate;
  const std::string name = freshName(candidate->fusion.parts);
  auto rows = launchSequence(run, first, count, host, candidate->parts, /*anyArgument=*/false);
  auto fused = rows ? optiml::fuseInBlocks(*rows, name, strictFloat) : llvm::Expected<FusedLaunches>(rows.takeError());
  // Threads that do what they did are more than blocks with a row each, and need no test whether rows overlap. What
  // stands beside the loop stays apart: it would keep these threads from being spread in other ways.
  const bool areTurns = llvm::all_of(llvm::seq(first, first + count), [&](size_t at) { return run.inLoop(at); });
  const bool sameThreads = llvm::all_of(llvm::seq(first, first + count),
                                        [&](size_t at) { return alike(site(run.sites[first]), site(run.sites[at])); });
  if (areTurns &&
      (!fused || (sameThreads && (!fused->kernel.blocks->rowOfThread || !fused->kernel.blocks->checkText.empty())))) {
    auto launches = launchSequence(run, first, count, host, candidate->parts, /*anyArgument=*/true);
    auto inThreads = launches ? orElse(threadsOf(run.sites, first, *launches, alike, name),
                                       [&] { // perhaps they are only taken for alike
                                         return threadsOf(run.sites, first, *launches, isSpelledAlike, name);
                                       })
                              : llvm::Expected<FusedLaunches>(launches.takeError());
    if (inThreads) {
      llvm::consumeError(fused.takeError());
      fused = std::move(inThreads);
    } else if (!fused) {
      const std::string why = llvm::toString(fused.takeError());
      fused = notApplicable("{0}; nor a loop of its threads: {1}", why, llvm::toString(inThreads.takeError()));
    } else {
      llvm::consumeError(inThreads.takeError());
    }
  }
  if (!fused)
    return fused.takeError();
  candidate->fusion.kernel = std::move(fused->kernel);
  candidate->fused = std::move(fused->state);
  for (LaunchRun::Loop loop : run.loops)
    if (loop.first >= first && loop.first < first + count) {
      loop.first -= first;
      candidate->fusion.loops.push_back(std::move(loop));
    }
  return candidate;
}

/// Its work can be spread over more threads, or over blocks of its own, which gains more than a place in another's
/// block.
static bool gainsByThreads(const KernelState &state) {
  return llvm::any_of(std::initializer_list<const char *>{"distribute-loop", "split-reduction", "privatize-atomic",
                                                          "transpose-through-shared", "stage-shared"},
                      [&](const char *name) { return !findTransform(name)->sites(state).empty(); });
}

/// Fuses as many launches as go together with a loop of them, each loop whole. False: none do.
bool FusionFinder::lookForBlocks(const LaunchRun &run, size_t &first, size_t &count) {
  if (run.loops.empty())
    return false;
  std::vector<bool> wanted; // by site
  for (size_t at = 0; at < run.sites.size(); ++at) {
    auto state = stateOf(site(run.sites[at]));
    wanted.push_back(state && (run.inLoop(at) || !gainsByThreads(**state)));
    if (!state)
      llvm::consumeError(state.takeError());
  }
  auto splits = [&](size_t at) { // a loop
    return llvm::any_of(run.loops, [&](const LaunchRun::Loop &l) { return l.first < at && at < l.first + l.count; });
  };
  std::string why;
  for (count = std::min(run.sites.size(), mostParts); count; --count)
    for (first = 0; first + count <= run.sites.size(); ++first) {
      const bool hasLoop = llvm::any_of(run.loops, [&, first = first, count = count](const LaunchRun::Loop &loop) {
        return loop.first >= first && loop.first + loop.count <= first + count;
      });
      if (!hasLoop || splits(first) || splits(first + count) ||
          std::find(wanted.begin() + long(first), wanted.begin() + long(first + count), false) !=
              wanted.begin() + long(first + count))
        continue;
      auto fusion = fuseInBlocks(run, first, count);
      if (!fusion) {
        why = llvm::toString(fusion.takeError()); // of the fewest
        continue;
      }
      const RowBlocks &blocks = *fusion->fusion.kernel.blocks;
      fusion->gainsByThreads = blocks.rowOfThread && llvm::any_of(fusion->parts, gainsByThreads);
      if (fusion->gainsByThreads && !blocks.sameThreads) {
        why = "its kernels gain more by more threads for each row";
        continue;
      }
      names.insert(fusion->fusion.kernel.name);
      found.fusions.push_back(std::move(*fusion));
      return true;
    }
  found.notes.push_back(llvm::formatv("line {0}: the loop of launches does not become one of a block: {1}",
                                      site(run.sites[run.loops.front().first]).line, why));
  return false;
}

/// Fuses as many launches as go together, from the first on.
void FusionFinder::look(const LaunchRun &run, llvm::ArrayRef<unsigned> sites) {
  while (sites.size() > 1) {
    std::optional<FusionCandidate> best;
    size_t count = 2;
    for (; count <= std::min(sites.size(), mostParts); ++count) {
      auto fusion = fuse(run, sites.take_front(count));
      if (!fusion) {
        found.notes.push_back(llvm::formatv("line {0}: the launch is not fused with what stands before it: {1}",
                                            site(sites[count - 1]).line, llvm::toString(fusion.takeError())));
        break;
      }
      best = std::move(*fusion);
    }
    if (best) {
      names.insert(best->fusion.kernel.name);
      found.fusions.push_back(std::move(*best));
    }
    sites = sites.drop_front(count - 1);
  }
}

FoundFusions FusionFinder::run() {
  FoundRuns runs = findLaunchRuns(host);
  found.notes = runs.notes;
  if (runs.runs.empty())
    return std::move(found);
  std::set<std::string> symbols;
  for (const LaunchRun &run : runs.runs)
    for (unsigned index : run.sites)
      symbols.insert(site(index).symbol);
  auto made = KernelSpace::create(
      device, [&](const KernelDecl &decl) { return symbols.count(decl.symbol) != 0; },
      [](const KernelDecl &) { return LaunchHints(); });
  if (!made) {
    found.notes.push_back(llvm::toString(made.takeError()));
    return std::move(found);
  }
  space = std::move(*made);
  // Loops of launches first. A block within one of them is a run, too.
  std::set<unsigned> taken;
  for (const LaunchRun &run : runs.runs)
    if (size_t first = 0, count = 0; lookForBlocks(run, first, count))
      taken.insert(run.sites.begin() + long(first), run.sites.begin() + long(first + count));
  for (const LaunchRun &run : runs.runs) {
    std::set<unsigned> inLoops;
    for (const LaunchRun::Loop &loop : run.loops)
      inLoops.insert(run.sites.begin() + long(loop.first), run.sites.begin() + long(loop.first + loop.count));
    llvm::ArrayRef<unsigned> rest = run.sites;
    auto isLeft = [&](unsigned index) { return !taken.count(index) && !inLoops.count(index); };
    while (!rest.empty()) {
      const llvm::ArrayRef<unsigned> own = rest.take_while(isLeft);
      look(run, own);
      rest = rest.drop_front(own.size()).drop_until(isLeft);
    }
  }
  return std::move(found);
}

bool optiml::isSpelledAlike(const LaunchSite &a, const LaunchSite &b) {
  return a.configAt(0) == b.configAt(0) && a.configAt(1) == b.configAt(1);
}

FoundFusions optiml::findFusions(const Program &device, const Program &host, bool strictFloat,
                                 const std::function<bool(const std::string &)> &wanted, const SameGeometry &alike,
                                 bool overRows) {
  return FusionFinder(device, host, strictFloat, wanted, alike, overRows).run();
}

std::vector<Fusion> optiml::fusionsOf(llvm::ArrayRef<FusionCandidate> candidates) {
  std::vector<Fusion> fusions;
  for (const FusionCandidate &candidate : candidates)
    fusions.push_back(candidate.fusion);
  return fusions;
}
