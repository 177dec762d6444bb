//===- Proposers.cpp - who proposes in a search ---------------------------===//
#include "GuardedCompile.h"
#include "ProposerChain.h"
#include "optiml/Support/Error.h"
#include <algorithm>
#include <set>

using namespace optiml;

static std::string dims(const std::array<uint32_t, 3> &d) { return llvm::formatv("({0}, {1}, {2})", d[0], d[1], d[2]); }

/// The integer in `bytes`, little endian, as a value of `type`; nothing for what no 64-bit signed integer holds.
static std::optional<int64_t> integerOf(const std::string &bytes, const Type &type) {
  if (!type.isInt() || bytes.empty() || bytes.size() > 8 || bytes.size() != type.bytes)
    return std::nullopt;
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | uint8_t(bytes[i]);
  unsigned shift = unsigned(64 - 8 * bytes.size());
  if (type.isSigned)
    return int64_t(value << shift) >> shift;
  return value >> 63 ? std::nullopt : std::optional(int64_t(value));
}

static std::string launchLine(const Kernel &kernel, const LaunchImage &launch) {
  std::string line = "grid " + dims(launch.grid) + ", block " + dims(launch.block);
  if (launch.sharedBytes)
    line += llvm::formatv(", {0} bytes of dynamic shared memory", launch.sharedBytes);
  if (launch.weight != 1)
    line += llvm::formatv(", {0} times", launch.weight);
  for (size_t i = 0; i < std::min(kernel.params.size(), launch.arguments.size()); ++i) {
    const ArgumentImage &argument = launch.arguments[i];
    const Param &param = kernel.params[i];
    if (auto value = integerOf(argument.bytes, param.type))
      line += llvm::formatv(", {0} = {1}", param.name, *value);
    else if (argument.isPointer && argument.buffer >= 0 && size_t(argument.buffer) < launch.buffers.size())
      line += llvm::formatv(", {0}: {1} bytes", param.name,
                            launch.buffers[size_t(argument.buffer)].bytes - argument.offset);
  }
  return line;
}

static std::string gpuText(const GpuSpec &gpu, const std::string &name) {
  return llvm::formatv(
             "{0}: compute capability {1}.{2}, {3} multiprocessors, {4:f0} MHz, {5:f0} GB/s DRAM, {6} MiB L2, {7} KiB "
             "L1 and shared memory per multiprocessor, {8} bytes of static shared memory per block at most, {9} "
             "registers "
             "per multiprocessor, {10} threads per multiprocessor, warps of 32",
             name, gpu.arch / 10, gpu.arch % 10, gpu.sms, gpu.clockHz / 1e6, gpu.dramBytesPerSecond / 1e9,
             gpu.l2Bytes >> 20, gpu.l1Bytes >> 10, gpu.sharedPerBlock, gpu.registersPerSM, gpu.maxThreadsPerSM)
      .str();
}

SearchFacts optiml::searchFacts(const SearchTask &task, const Program &device, const KernelSpace &space,
                                const Backend &backend) {
  SearchFacts facts;
  const GpuSpec *named = GpuSpec::findOn(backend.gpuName());
  facts.gpu = gpuText(named ? *named : GpuSpec::forArch(task.options.arch), backend.gpuName());
  facts.measured = backend.measures();
  facts.rules = task.flags.fp.isStrict() ? "Results must stay the same bit for bit."
                : !task.flags.fp.isFast()
                    ? "Sums may be reordered; no approximate functions, no lower precision."
                    : "Sums may be reordered, and approximate functions used; no lower precision.";
  std::vector<std::pair<double, KernelFacts>> ranked;
  for (const KernelDecl &decl : device.kernels()) {
    const KernelState *state = space.kernel(decl.name);
    if (!state)
      continue;
    KernelFacts kernel;
    kernel.name = decl.name;
    kernel.twin = state->rewrite.twin;
    kernel.parameters = declarations(parametersOf(*state->original));
    kernel.printed = print(*state->original);
    kernel.source = decl.source.empty() ? kernel.printed : decl.source;
    double threads = 0;
    for (const LaunchImage &launch : backend.performance().launches) {
      if (launch.kernel != decl.symbol)
        continue;
      threads += launch.weight * double(threadsOf(launch));
      if (kernel.launches.size() < 6)
        kernel.launches.push_back(launchLine(*state->original, launch));
    }
    ranked.emplace_back(threads, std::move(kernel));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  for (auto &[threads, kernel] : ranked)
    facts.kernels.push_back(std::move(kernel));
  return facts;
}

namespace {
/// Launches of one geometry, with the range of each integer argument.
struct SizeClass {
  const LaunchImage *first;
  double weight = 0;
  std::vector<std::optional<std::pair<int64_t, int64_t>>> ranges;
};
} // namespace

std::string optiml::exercisedCondition(const Kernel &kernel, const std::vector<const LaunchImage *> &launches) {
  constexpr size_t mostClasses = 32;
  std::vector<SizeClass> classes;
  for (const LaunchImage *launch : launches) {
    if (launch->arguments.size() != kernel.params.size())
      continue;
    auto at = std::find_if(classes.begin(), classes.end(), [&](const SizeClass &c) {
      return c.first->grid == launch->grid && c.first->block == launch->block &&
             c.first->sharedBytes == launch->sharedBytes;
    });
    if (at == classes.end())
      at = classes.insert(classes.end(), SizeClass{launch, 0, decltype(SizeClass::ranges)(kernel.params.size())});
    at->weight += launch->weight;
    for (size_t i = 0; i < kernel.params.size(); ++i)
      if (auto value = integerOf(launch->arguments[i].bytes, kernel.params[i].type)) {
        auto &range = at->ranges[i];
        range = range ? std::pair(std::min(range->first, *value), std::max(range->second, *value))
                      : std::pair(*value, *value);
      }
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const SizeClass &a, const SizeClass &b) { return a.weight > b.weight; });
  if (classes.size() > mostClasses)
    classes.resize(mostClasses);
  static const std::set<std::string> reserved = {"grid", "block", "shared"};
  std::string condition;
  for (const SizeClass &c : classes) {
    std::string one;
    for (unsigned axis = 0; axis < 3; ++axis)
      one += llvm::formatv("{0}grid.{1} == {2} && block.{1} == {3}", axis ? " && " : "", "xyz"[axis],
                           c.first->grid[axis], c.first->block[axis])
                 .str();
    one += llvm::formatv(" && shared == {0}", c.first->sharedBytes).str();
    for (size_t i = 0; i < c.ranges.size(); ++i) {
      if (!c.ranges[i] || reserved.count(kernel.params[i].name))
        continue;
      auto [low, high] = *c.ranges[i];
      const std::string &name = kernel.params[i].name;
      one += low == high ? llvm::formatv(" && {0} == {1}", name, low).str()
                         : llvm::formatv(" && {0} >= {1} && {0} <= {2}", name, low, high).str();
    }
    condition += (condition.empty() ? "(" : " || (") + one + ")";
  }
  return condition.empty() ? "0" : condition;
}

LanguageModelSettings optiml::modelPolicySettings(const OwnFlags &flags) {
  LanguageModelSettings settings;
  settings.expert = flags.proposer != "model";
  settings.mixture = flags.llmMixture;
  settings.judge = flags.llmJudge;
  settings.kernels = flags.llmKernels;
  settings.waitSeconds = flags.llmTime;
  settings.writer.allowAssembly = flags.llmAssembly;
  return settings;
}

bool optiml::modelsPropose(const OwnFlags &flags) { return flags.proposer != "expert" && !flags.llm.models.empty(); }

void optiml::acceptKernelTexts(KernelSpace &space, std::shared_ptr<const KernelTexts> texts, const SearchTask &task,
                               const Program &device, const Backend &backend) {
  for (const KernelDecl &decl : device.kernels()) {
    const KernelState *state = space.kernel(decl.name);
    if (!state)
      continue;
    std::vector<const LaunchImage *> launches;
    for (const Workload *workload : backend.exercised())
      for (const LaunchImage &launch : workload->launches)
        if (launch.kernel == decl.symbol)
          launches.push_back(&launch);
    space.setExercised(decl.name, exercisedCondition(*state->original, launches));
  }
  GuardedCompile guarded{task.toolchain.libDir + "/../bin/optiml-search", task.path, task.arguments, task.cancel()};
  space.acceptTexts({std::move(texts),
                     [path = task.path, options = task.options, toolchain = task.toolchain,
                      guarded](const std::string &text) -> llvm::Expected<std::unique_ptr<Program>> {
                       if (llvm::Error e = guarded(text))
                         return std::move(e);
                       return Program::parse(path, text, options, toolchain, View::Device);
                     },
                     task.flags.llmAssembly});
}

nlohmann::json optiml::textsOf(const Recipe &recipe, const KernelTexts &texts) {
  nlohmann::json result = nlohmann::json::object();
  for (const Action &action : recipe)
    if (auto name = action.params.find("text"); action.transform == replaceBody && name != action.params.end())
      if (auto text = texts.find(name->second))
        result[name->second] = toJson(*text);
  return result;
}
