//===- SearchStory.cpp - what a report tells beside evaluations -----------===//
#include "SearchStory.h"
#include "ProposerChain.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FormatVariadic.h"

using namespace optiml;
using nlohmann::json;

/// What the GPU can do in a second: bytes of each memory, and operations of each kind. A fused multiply-add counts as
/// two; an instruction as 32, one a lane.
static json peaksOf(const GpuSpec &gpu) {
  constexpr double lanes = 32;
  const double clocks = gpu.sms * gpu.clockHz;
  return {{"dram", gpu.dramBytesPerSecond},
          {"l2", gpu.l2BytesPerSecond},
          {"fp32", clocks * gpu.rates.fp32 * lanes * 2},
          {"fp64", clocks * gpu.rates.fp64 * lanes * 2},
          {"int32", clocks * gpu.rates.int32 * lanes},
          {"issue", clocks * gpu.rates.issue * lanes}};
}

json optiml::storyOf(const SearchTask &task, const Program &device, const KernelSpace &space, const Backend &backend) {
  const GpuSpec *named = GpuSpec::findOn(backend.gpuName());
  json story = {{"date", llvm::formatv("{0:%Y-%m-%dT%H:%M:%S}", std::chrono::system_clock::now()).str()},
                {"command", task.flags.command},
                {"cuda", task.toolchain.cudaVersion()},
                {"measured", backend.measures()},
                {"fp", task.flags.fp.str()},
                {"peaks", peaksOf(named ? *named : GpuSpec::forArch(task.options.arch))},
                {"source", task.text},
                {"kernels", json::array()},
                {"launches", json::array()},
                {"leftAsTheyAre", json::array()}};
  for (const KernelFacts &kernel : searchFacts(task, device, space, backend).kernels) {
    json one = {{"name", kernel.name}, {"launches", kernel.launches}, {"source", kernel.source}};
    if (const KernelDecl *decl = device.findKernel(kernel.name)) {
      one["line"] = decl->line;
      one["symbol"] = decl->symbol;
      if (auto use = backend.timeOf(decl->symbol))
        one["share"] = use->share;
    }
    story["kernels"].push_back(one);
  }
  for (const LaunchImage &launch : backend.performance().launches) {
    const KernelDecl *decl = device.findKernel(launch.kernel);
    story["launches"].push_back({{"kernel", decl ? decl->name : launch.name}, {"times", launch.weight}});
  }
  for (const KernelSpace::Skipped &skipped : space.skipped())
    story["leftAsTheyAre"].push_back({{"kernel", skipped.kernel}, {"why", skipped.reason}});
  return story;
}

static const KernelRewrite *rewriteOf(const Variant &variant, llvm::StringRef kernel) {
  for (const KernelRewrite &rewrite : variant.rewrites)
    if (rewrite.original == kernel)
      return &rewrite;
  return nullptr;
}

/// The line of the loop in which a site lies; 0: it is the kernel's.
static unsigned lineOf(const KernelSpace &space, llvm::StringRef site) {
  const KernelState *kernel = space.kernel(siteKernel(site).str());
  if (!kernel || !kernel->tree)
    return 0;
  const llvm::StringRef wanted = site.drop_front(siteKernel(site).size()).split(':').first;
  for (const auto &[path, loop] : countedLoops(*kernel->tree))
    if (!wanted.empty() && path == wanted)
      return loop->line;
  return 0;
}

/// The state in which what works on tiles can begin.
static llvm::Expected<SearchState> withFixedBlock(KernelSpace &space, const std::string &kernel) {
  auto root = space.root();
  if (!root)
    return root;
  for (const ActionTemplate &action : root->legal.of("block-shape"))
    if (siteKernel(action.site) == kernel && !action.values.empty())
      return space.apply(*root, {action.transform, action.site, action.values.front()});
  return root;
}

static bool offers(const SearchState &state, const std::string &transform, llvm::StringRef kernel) {
  return llvm::any_of(state.legal.of(transform),
                      [&](const ActionTemplate &action) { return siteKernel(action.site) == kernel; });
}

/// Every place that a transform may be asked about.
static std::vector<std::string> sitesOf(const KernelSpace &space, const std::string &kernel) {
  const Kernel &tree = *space.kernel(kernel)->tree;
  std::vector<std::string> places = {kernel};
  for (const auto &[path, loop] : countedLoops(tree))
    places.push_back(kernel + path);
  std::vector<std::string> sites = places;
  for (const std::string &place : places)
    for (const Param &param : tree.params)
      if (param.type.isPointer())
        sites.push_back(place + ":" + param.name);
  return sites;
}

/// Why the transform applies nowhere in the kernel, where a line of the source is to blame; else null. That it has
/// nothing to work on, or that something else must come first, is no news.
static json refusalOf(KernelSpace &space, const std::vector<const SearchState *> &states, const std::string &kernel,
                      const std::string &transform) {
  for (const SearchState *state : states)
    for (const std::string &site : sitesOf(space, kernel)) {
      auto applied = space.apply(*state, {transform, site, {}});
      if (applied)
        return nullptr;
      const std::string why = llvm::toString(applied.takeError());
      unsigned line = 0;
      if (llvm::StringRef number = llvm::StringRef(why).split("(line ").second;
          number.consumeInteger(10, line) || !line)
        continue;
      const llvm::StringRef reason = llvm::StringRef(why).split("]: ").second;
      return {
          {"kernel", kernel}, {"transform", transform}, {"why", reason.empty() ? why : reason.str()}, {"line", line}};
    }
  return nullptr;
}

json optiml::missedIn(KernelSpace &space, const Recipe &taken) {
  json missed = json::array();
  auto root = space.root();
  if (!root) {
    llvm::consumeError(root.takeError());
    return missed;
  }
  std::set<std::string> expected;
  for (const OpeningLine &line : ExpertPolicy().openingBook(*root))
    for (const OpeningStep &step : line.steps)
      if (step.required)
        expected.insert(step.transform);
  for (const std::string &kernel : space.kernelNames()) {
    auto fixed = withFixedBlock(space, kernel);
    if (!fixed) {
      llvm::consumeError(fixed.takeError());
      continue;
    }
    const bool hasAtomics = llvm::StringRef(print(*space.kernel(kernel)->tree)).contains("atomic");
    for (const std::string &transform : expected) {
      if (transform == "privatize-atomic" && !hasAtomics)
        continue;
      if (llvm::any_of(taken,
                       [&](const Action &a) { return a.transform == transform && siteKernel(a.site) == kernel; }))
        continue;
      if (!offers(*root, transform, kernel) && !offers(*fixed, transform, kernel))
        if (json refusal = refusalOf(space, {&*root, &*fixed}, kernel, transform); !refusal.is_null())
          missed.push_back(refusal);
    }
  }
  return missed;
}

json optiml::stepsOf(KernelSpace &space, const Recipe &recipe,
                     const std::function<Measurement(const Variant &)> &measure) {
  json steps = json::array();
  auto state = space.root();
  std::map<std::string, std::string> texts; // as they are before a step
  for (const Action &action : recipe) {
    if (!state)
      break;
    state = space.apply(*state, action);
    if (!state)
      break;
    const std::string kernel = siteKernel(action.site).str();
    const KernelRewrite *rewrite = rewriteOf(*state->variant, kernel);
    if (!rewrite)
      continue;
    std::string &text = texts[kernel];
    if (const KernelState *original = space.kernel(kernel); text.empty() && original)
      text = print(*original->original);
    json conditions = json::array();
    for (const Condition &condition : rewrite->conditions)
      conditions.push_back({{"holds", condition.expression.str()}, {"because", condition.why}});
    steps.push_back({{"action", action.str()},
                     {"transform", action.transform},
                     {"kernel", kernel},
                     {"line", lineOf(space, action.site)},
                     {"key", state->key},
                     {"before", text},
                     {"after", rewrite->twinText},
                     {"conditions", conditions},
                     {"onlyTested", rewrite->testedOnly}});
    if (measure && &action != &recipe.back() && !state->isSketch)
      if (Measurement m = measure(*state->variant); m.time.seconds > 0)
        steps.back()["measurement"] = toJson(m);
    text = rewrite->twinText;
  }
  llvm::consumeError(state.takeError()); // what was applied in the search applies
  return steps;
}
