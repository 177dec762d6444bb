//===- SearchProgram.cpp - optiml-clang -O-search -------------------------===//
//
// The order of things: understand the command line, choose a backend, parse, look the search up in the store, observe
// the program's own run, search, emit, check, compile. Whatever goes wrong on the way, the file is compiled as nvcc would
// and one warning says why (an error with --optiml-strict).
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/SearchProgram.h"
#include "optiml/Driver/Models.h"
#include "Backend.h"
#include "FinalCompile.h"
#include "FuseTrial.h"
#include "LoopTrial.h"
#include "MemoryUse.h"
#include "ProgramTrial.h"
#include "Proposers.h"
#include "optiml/Core/Hash.h"
#include "optiml/Driver/Emit.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Evaluate/Ptxas.h"
#include "optiml/Propose/ExpertPolicy.h"
#include "optiml/Report/Progress.h"
#include "optiml/Report/Trajectory.h"
#include "optiml/Search/Search.h"
#include "optiml/Store/Store.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Transforms/KernelSpace.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

using namespace optiml;

namespace {

constexpr const char *version = "0.1.0";

std::atomic<bool> interrupted{false};
void onInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL); // the second one ends the program
}

std::string timeText(double seconds) {
  if (seconds >= 1)
    return llvm::formatv("{0:f2} s", seconds);
  if (seconds >= 1e-3)
    return llvm::formatv("{0:f2} ms", seconds * 1e3);
  return llvm::formatv("{0:f1} us", seconds * 1e6);
}

/// What a finished search leaves behind, also in the store.
struct Outcome {
  bool improved = false;
  std::string emitted; ///< the new source; empty when the original stays
  nlohmann::json summary;
  Recipe recipe;
  bool cancelled = false; ///< by a signal
  /// How many times as fast the program's kernels are.
  double gain() const {
    if (double program = summary.value("programSpeedup", 0.0); improved && program > 0)
      return program;
    double after = summary.value("bestSeconds", 0.0);
    return improved && after > 0 ? summary.value("baselineSeconds", 0.0) / after : 1;
  }
};

/// The variant, dispatched only where a launch has at least half as many threads as the smallest that was searched on:
/// far below that a tiling that wins on large launches may lose.
Variant limitedToSizes(Variant variant, const Workload &performance) {
  for (KernelRewrite &rewrite : variant.rewrites) {
    uint64_t least = UINT64_MAX;
    for (const LaunchImage &launch : performance.launches)
      if (launch.kernel == rewrite.originalSymbol)
        least = std::min(least, threadsOf(launch));
    if (least >= 2 && least != UINT64_MAX)
      rewrite.conditions.insert(
          rewrite.conditions.begin(),
          {IntExpr::of("grid.x * grid.y * grid.z * block.x * block.y * block.z >= " + std::to_string(least / 2)),
           "smaller launches were not looked at"});
  }
  return variant;
}

/// The whole program's times take the place of those of the kernels that were searched.
void addTimes(const ProgramTimes &times, nlohmann::json &summary) {
  summary["baselineSeconds"] = times.before;
  summary["bestSeconds"] = times.after;
  summary["speedup"] = times.before / times.after;
  for (const char *interval : {"speedupLow", "speedupHigh"})
    summary.erase(interval); // the search's, of its kernels alone
}

void addVerified(const std::string &what, nlohmann::json &summary) {
  std::string verified = summary.value("verified", std::string());
  summary["verified"] = verified + (verified.empty() ? "" : "; ") + what;
}

/// What replaced loops of launches change in the summary.
void addLoops(const LoopTrial &loops, nlohmann::json &summary) {
  for (const std::string &note : loops.notes)
    summary["notes"].push_back(note);
  if (loops.rewrites.empty())
    return;
  std::string recipe = summary.value("recipeText", std::string());
  for (const LoopRewrite &rewrite : loops.rewrites) {
    recipe += (recipe.empty() ? "" : "; ") + ("launch-loop[" + rewrite.kernel.original + "]");
    summary["loops"].push_back(rewrite.kernel.original);
  }
  summary["recipeText"] = recipe;
  addTimes(loops.times, summary);
  addVerified(loops.verified, summary);
}

/// ... and what fused launches do, which the search began with.
void addFusions(const FuseTrial &fused, nlohmann::json &summary) {
  for (const std::string &note : fused.notes)
    summary["notes"].push_back(note);
  if (!fused.device)
    return;
  std::string first, recipe = summary.value("recipeText", std::string());
  for (const std::string &kernels : fused.kernels) {
    first += (first.empty() ? "" : "; ") + ("fuse-launches[" + kernels + "]");
    summary["fused"].push_back(kernels);
  }
  summary["recipeText"] = first + (recipe.empty() ? "" : "; ") + recipe;
  addVerified(fused.verified, summary);
}

/// Where the time of a search goes.
struct PhaseClock {
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
  nlohmann::json seconds = nlohmann::json::object();
  void ended(const char *phase) {
    auto now = std::chrono::steady_clock::now();
    seconds[phase] = seconds.value(phase, 0.0) + std::chrono::duration<double>(now - last).count();
    last = now;
  }
};

class Session {
public:
  Session(OwnFlags flags, std::vector<std::string> arguments, Toolchain toolchain)
      : flags(std::move(flags)), arguments(std::move(arguments)), toolchain(std::move(toolchain)) {}
  int run();

private:
  llvm::Expected<Outcome> search();
  llvm::Expected<Outcome> searchWith(const Program &given, Store *store, const std::string &context, const std::string &searchKey);
  llvm::Expected<Outcome> searchProgram(const SearchTask &task, const Program &device, const FuseTrial &fused, const SearchBudget &budget,
                                        Store *store, const std::string &context, const std::string &searchKey);
  llvm::Expected<Outcome> searchFused(SearchTask task, const FuseTrial &fused, const SearchBudget &budget, const std::string &name,
                                      Store *store, const std::string &context, const std::string &searchKey);
  llvm::Error chooseBackend();
  llvm::Error openModels();
  int fallBack(const std::string &why);
  int finish(const Outcome &outcome);
  void printSummary(const Outcome &outcome) const;
  std::string proposerKey() const;

  OwnFlags flags;
  std::vector<std::string> arguments;
  Toolchain toolchain;
  CompileOptions options;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ModelSession> models; ///< null: none could be opened
  std::string path, text;
  bool fromStore = false;
  PhaseClock clock;
};

int Session::fallBack(const std::string &why) {
  llvm::StringRef reason = llvm::StringRef(why).trim();
  if (flags.strict) {
    llvm::errs() << "optiml-clang: error: " << reason << "\n";
    return 1;
  }
  llvm::errs() << "optiml-clang: warning: no search, compiled as nvcc would: " << reason << "\n";
  auto code = compileOriginal(toolchain, arguments);
  if (code)
    return *code;
  llvm::errs() << "optiml-clang: error: " << llvm::toString(code.takeError()) << "\n";
  return 1;
}

/// What of the models decides a search's outcome, as far as that can be told.
std::string Session::proposerKey() const {
  if (!models || models->models().empty() || !modelsPropose(flags))
    return "";
  std::string key = "|" + flags.proposer + "|" + modelPolicySettings(flags).str();
  for (const ChatModel *model : models->models())
    key += "|" + model->name();
  return key;
}

llvm::Error Session::openModels() {
  auto opened = optiml::openModels(flags, "optiml-clang", options.inputs.empty() ? "" : options.inputs[0], &interrupted);
  if (!opened)
    return opened.takeError();
  models = std::move(*opened);
  return llvm::Error::success();
}

int Session::run() {
  options = CompileOptions::parse(arguments);
  if (llvm::Error e = openModels()) {
    std::string why = llvm::toString(std::move(e));
    if (flags.strict)
      return fallBack(why);
    llvm::errs() << "optiml-clang: warning: no language model is asked: " << why << "\n";
  }
  if (!options.tooHard.empty())
    return fallBack(options.tooHard);
  if (options.inputs.size() != 1)
    return fallBack(options.inputs.empty() ? "there is no CUDA source on the command line"
                                           : "there are several CUDA sources on the command line; search them one by one");
  if (llvm::Error e = chooseBackend())
    return fallBack(llvm::toString(std::move(e)));
  auto outcome = search();
  if (!outcome && backend->measures() && flags.backend == BackendChoice::Auto && !interrupted) {
    llvm::errs() << "optiml-clang: warning: no search on the GPU, trying the CPU emulator: "
                 << llvm::toString(outcome.takeError()) << "\n";
    backend = makeCpuBackend(options.arch);
    outcome = search();
  }
  if (!outcome)
    return fallBack(llvm::toString(outcome.takeError()));
  return finish(*outcome);
}

/// Takes a GPU where there is one, unless told otherwise, and says so.
llvm::Error Session::chooseBackend() {
  std::string why = "asked for";
  if (flags.backend != BackendChoice::Cpu) {
    auto gpu = makeGpuBackend(flags, toolchain, options, &interrupted);
    if (gpu) {
      backend = std::move(*gpu);
      llvm::errs() << "optiml-clang: variants are measured on " << backend->gpuName();
      if (backend->gpuCount() > 1)
        llvm::errs() << ", " << backend->gpuCount() << " of them";
      llvm::errs() << "\n";
      return llvm::Error::success();
    }
    why = llvm::toString(gpu.takeError());
    if (flags.backend == BackendChoice::Gpu)
      return makeError("--optiml-backend=gpu: no GPU can be used: {0}", why);
  }
  backend = makeCpuBackend(options.arch);
  llvm::errs() << "optiml-clang: variants are predicted for " << backend->gpuName() << " on the CPU emulator (" << why
               << ")\n";
  return llvm::Error::success();
}

llvm::Expected<Outcome> Session::search() {
  path = options.inputs[0];
  auto content = readFile(path);
  if (!content)
    return content.takeError();
  text = std::move(*content);
  llvm::SmallString<256> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  auto device = Program::parse(absolute.str().str(), text, options, toolchain, View::Device);
  if (!device)
    return device.takeError();
  if ((*device)->kernels().empty())
    return makeError("{0}: there is no kernel in this file", path);

  StoreContext context;
  context.sourceText = text;
  context.options = options.frontendFlags;
  context.options.push_back(options.archName);
  for (const std::string &flag : cubinFlags(options.nvccArgs))
    context.options.push_back(flag);
  for (const std::string &header : (*device)->headers())
    if (auto content = readFile(header))
      context.options.push_back(header + ":" + contentHash(*content));
    else
      llvm::consumeError(content.takeError());
  context.gpu = backend->gpuName();
  std::string args;
  for (const std::string &a : flags.programArgs)
    args += a + '\0';
  context.workloadHash = contentHash(args);
  context.fpMode = flags.fp == FpMode::Strict ? "strict" : flags.fp == FpMode::Fast ? "fast" : "reassoc";
  context.backend = backend->storeName() + (flags.coldCache ? " cold" : "") + " " + (backend->measures() ? flags.profiler : "");
  context.version = version;
  std::string contextHash = context.hash();
  std::string searchKey =
      contentHash(contextHash + "|" + flags.kernel + "|" + flags.strategy + "|" + std::to_string(flags.budget.evaluations) +
                  "|" + std::to_string(flags.budget.seconds) + "|" + std::to_string(flags.seed) + "|" + std::to_string(flags.margin) +
                  (flags.memory == MemoryUse::Off ? "|without memory" : "") + proposerKey());

  std::unique_ptr<Store> store;
  if (flags.store != "none") {
    auto opened = Store::open(storeFolderOf(flags) + "/store.db");
    if (opened)
      store = std::move(*opened);
    else
      llvm::errs() << "optiml-clang: warning: the search goes on without a store: " << llvm::toString(opened.takeError()) << "\n";
  }
  if (store) {
    auto known = store->findSearch(searchKey);
    if (!known)
      llvm::consumeError(known.takeError());
    else if (*known) {
      fromStore = true;
      return Outcome{!(*known)->emittedText.empty(), (*known)->emittedText, (*known)->summary, (*known)->recipe, false};
    }
  }
  auto outcome = searchWith(**device, store.get(), contextHash, searchKey);
  if (outcome && store && !interrupted && !outcome->cancelled) {
    StoredSearch stored;
    stored.recipe = outcome->recipe;
    stored.emittedText = outcome->emitted;
    stored.summary = outcome->summary;
    stored.time = std::time(nullptr);
    if (llvm::Error e = store->addSearch(searchKey, contextHash, stored))
      llvm::errs() << "optiml-clang: warning: " << llvm::toString(std::move(e)) << "\n";
  }
  return outcome;
}

// Where launches can be fused in two ways, the one that loses threads gets this share of the budget.
static constexpr unsigned sharedBy = 2;
// It must be this much faster: its program has fewer threads, and other GPUs may have more of them.
static constexpr double surelyFaster = 1.02;

/// Of the program searched as it is, and with launches over rows fused.
static Outcome better(Outcome apart, std::optional<Outcome> overRows) {
  if (!overRows)
    return apart;
  const bool fuse = overRows->gain() > surelyFaster * apart.gain();
  std::string note = llvm::formatv("{0} evaluations with launches of a thread an element apart ended {1:f2} times as fast as the original, {2} with them fused over rows {3:f2} times",
                                   apart.summary.value("evaluations", 0u), apart.gain(), overRows->summary.value("evaluations", 0u), overRows->gain());
  unsigned evaluations = apart.summary.value("evaluations", 0u) + overRows->summary.value("evaluations", 0u);
  Outcome winner = fuse ? std::move(*overRows) : std::move(apart);
  winner.summary["evaluations"] = evaluations;
  winner.summary["notes"].push_back(note);
  return winner;
}

/// Searches the program, and beside it what it becomes when launches of a thread an element join those of a thread a row:
/// which of them ends faster is not seen before.
llvm::Expected<Outcome> Session::searchWith(const Program &given, Store *store, const std::string &context, const std::string &searchKey) {
  auto scratch = TempDir::create("optiml-search");
  if (!scratch)
    return scratch.takeError();
  clock = PhaseClock();
  SearchTask task{flags, toolchain, options, arguments, given.path(), text, scratch->path(), &interrupted};
  if (llvm::Error e = backend->observe(task))
    return makeError("{0}: {1}", path, llvm::toString(std::move(e)));
  clock.ended("observe");
  FuseTrial fused = tryFusions(task, *backend, given);
  SearchBudget budget = flags.budget;
  FuseTrial rows;
  if (budget.evaluations != 1)
    rows = tryRowFusions(task, *backend, given, fused);
  clock.ended("fuse");
  std::optional<Outcome> overRows;
  if (rows.device) {
    SearchBudget share{budget.evaluations / sharedBy, budget.seconds / sharedBy};
    auto begin = std::chrono::steady_clock::now();
    auto outcome = searchFused(task, rows, share, "rows", store, context, contentHash(searchKey + "|rows"));
    if (outcome) {
      overRows = std::move(*outcome);
      if (budget.evaluations)
        budget.evaluations -= std::min(budget.evaluations - 1, overRows->summary.value("evaluations", 0u));
      if (budget.seconds > 0)
        budget.seconds -= std::min(budget.seconds / sharedBy, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    } else {
      fused.notes.push_back("launches over rows are not fused: " + llvm::toString(outcome.takeError()));
    }
    if (overRows && interrupted)
      return std::move(*overRows);
  }
  for (const std::string &note : rows.notes)
    if (!rows.device && !llvm::is_contained(fused.notes, note))
      fused.notes.push_back(note);
  if (fused.device) {
    auto outcome = searchFused(task, fused, budget, "fused", store, context, searchKey);
    if (outcome)
      return better(std::move(*outcome), std::move(overRows));
    llvm::errs() << "optiml-clang: warning: launches that could be fused stay apart: " << llvm::toString(outcome.takeError()) << "\n";
  }
  if (fused.device || rows.device) {
    task.folder += "/apart";
    if (std::error_code e = llvm::sys::fs::create_directory(task.folder))
      return makeError("{0}: {1}", task.folder, e.message());
    if (llvm::Error e = backend->observe(task)) {
      if (!overRows)
        return makeError("{0}: {1}", path, llvm::toString(std::move(e)));
      llvm::consumeError(std::move(e));
      return std::move(*overRows);
    }
  }
  FuseTrial apart;
  apart.notes = std::move(fused.notes);
  auto outcome = searchProgram(task, given, apart, budget, store, context, searchKey);
  if (!outcome && !overRows)
    return outcome.takeError();
  if (!outcome)
    llvm::consumeError(outcome.takeError()); // the program with launches fused was searched
  return better(outcome ? std::move(*outcome) : Outcome(), std::move(overRows));
}

/// Searches a program in which launches are fused, in the place of the original.
llvm::Expected<Outcome> Session::searchFused(SearchTask task, const FuseTrial &fused, const SearchBudget &budget, const std::string &name,
                                             Store *store, const std::string &context, const std::string &searchKey) {
  task.text = fused.text;
  task.replaced = true;
  task.folder += "/" + name;
  if (std::error_code e = llvm::sys::fs::create_directory(task.folder))
    return makeError("{0}: {1}", task.folder, e.message());
  if (llvm::Error e = backend->observe(task))
    return std::move(e);
  clock.ended("observe");
  bool launched = llvm::any_of(backend->performance().launches, [&](const LaunchImage &launch) {
    const KernelDecl *decl = fused.device->findKernel(launch.kernel);
    return decl && llvm::any_of(fused.names, [&](const std::string &kernel) { return llvm::StringRef(decl->name).ends_with(kernel); });
  });
  if (!launched)
    return notApplicable("the program does not launch them as the fused kernel needs it");
  return searchProgram(task, *fused.device, fused, budget, store, contentHash(context + "|" + fused.text), searchKey);
}

llvm::Expected<Outcome> Session::searchProgram(const SearchTask &task, const Program &device, const FuseTrial &fused,
                                               const SearchBudget &budget, Store *store, const std::string &context,
                                               const std::string &searchKey) {
  const Workload &performance = backend->performance();

  // Only kernels that the program launches, with what is known of their heaviest launch.
  std::map<std::string, LaunchHints> hints;
  std::map<std::string, double> heaviest;
  for (const LaunchImage &launch : performance.launches) {
    std::vector<std::string> &arguments = hints[launch.kernel].arguments;
    bool first = arguments.empty();
    arguments.resize(launch.arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ArgumentImage &argument = launch.arguments[i];
      if (first && !argument.isPointer)
        arguments[i] = argument.bytes;
      else if (arguments[i] != argument.bytes)
        arguments[i].clear();
    }
    double threads = launch.weight * double(threadsOf(launch));
    if (threads <= heaviest[launch.kernel])
      continue;
    heaviest[launch.kernel] = threads;
    LaunchHints &h = hints[launch.kernel];
    for (unsigned i = 0; i < 3; ++i) {
      h.grid[i] = launch.grid[i];
      h.block[i] = launch.block[i];
    }
    h.strictFloat = flags.fp == FpMode::Strict;
    h.multiprocessors = GpuSpec::forArch(options.arch).sms;
  }
  std::regex filter;
  try {
    filter = std::regex(flags.kernel.empty() ? ".*" : flags.kernel, std::regex::extended);
  } catch (const std::regex_error &e) {
    return makeError("--optiml-kernel={0} is no regular expression: {1}", flags.kernel, e.what());
  }
  auto space = KernelSpace::create(
      device,
      [&](const KernelDecl &decl) { return hints.count(decl.symbol) && std::regex_search(decl.name, filter); },
      [&](const KernelDecl &decl) { return hints.at(decl.symbol); });
  if (!space)
    return space.takeError();
  for (const KernelSpace::Skipped &skipped : (*space)->skipped())
    llvm::errs() << "optiml-clang: note: kernel " << skipped.kernel << " is left as it is: " << skipped.reason << "\n";
  if ((*space)->empty())
    return makeError("{0}: no kernel that the program launches can be rewritten", path);

  auto evaluator = backend->evaluator(task);
  if (!evaluator)
    return evaluator.takeError();
  clock.ended("baseline");

  SearchSettings settings;
  if (auto strategy = strategyFromName(flags.strategy))
    settings.strategy = *strategy;
  settings.evaluations = budget.evaluations;
  settings.seconds = budget.seconds;
  settings.seed = flags.seed;
  settings.jobs = flags.jobs ? flags.jobs : std::max(1u, std::thread::hardware_concurrency());
  settings.margin = flags.margin;
  settings.simplerWithin = 1.02;
  backend->configure(settings);
  settings.cancel = &interrupted;

  ExpertPolicy policy;
  Proposer *proposer = &policy;
  // What is remembered is no part of the search's key: the same search again is answered from the store.
  LessonRecorder lessons;
  KernelIdentities kernels;
  std::unique_ptr<LearntMemory> learnt;
  std::unique_ptr<MemoryPolicy> withMemory;
  MemoryOrigin origin{context, backend->gpuName(), backend->measures() ? "measured" : "model"};
  if (store && flags.memory == MemoryUse::On) {
    auto root = (*space)->root();
    if (!root)
      return root.takeError();
    kernels = identifyKernels(*root);
    if (auto memories = store->memories()) {
      learnt = std::make_unique<LearntMemory>(std::move(*memories), kernels, origin);
      withMemory = std::make_unique<MemoryPolicy>(policy, *learnt);
      proposer = withMemory.get();
    } else {
      llvm::errs() << "optiml-clang: warning: the search goes on without memory: " << llvm::toString(memories.takeError()) << "\n";
    }
  }

  ObserverList observers;
  observers.add(&lessons);
  Progress progress(2, settings.evaluations);
  observers.add(&progress);
  std::unique_ptr<Trajectory> trajectory;
  if (flags.store != "none") {
    std::string file = llvm::formatv("{0}/trajectories/{1}-{2}.jsonl", storeFolderOf(flags), llvm::sys::path::stem(path), searchKey.substr(0, 12));
    nlohmann::json about = {{"file", device.path()}, {"gpu", backend->gpuName()}, {"backend", backend->storeName()}, {"settings", settings.str()},
                            {"arguments", flags.programArgs}, {"otherSizes", backend->otherSizes()}, {"version", version}};
    if (learnt)
      about["memory"] = describeMatches(*learnt);
    auto created = Trajectory::create(file, about);
    if (created) {
      trajectory = std::move(*created);
      observers.add(trajectory.get());
    } else {
      llvm::errs() << "optiml-clang: warning: no trajectory is written: " << llvm::toString(created.takeError()) << "\n";
    }
  }
  std::unique_ptr<StoreMemory> memory;
  if (store)
    memory = std::make_unique<StoreMemory>(*store, context, [&](const std::string &why) {
      progress.clear();
      llvm::errs() << "optiml-clang: warning: the search goes on without its store: " << why << "\n";
    });
  auto texts = std::make_shared<KernelTexts>();
  std::unique_ptr<ModelPolicy> asking;
  if (models && !models->models().empty() && modelsPropose(flags)) {
    ModelPolicySettings proposing = modelPolicySettings(flags);
    if (proposing.kernels)
      acceptKernelTexts(**space, texts, task, device, *backend);
    asking = std::make_unique<ModelPolicy>(
        *proposer, models->models().vec(), searchFacts(task, device, **space, *backend), proposing,
        [&](const nlohmann::json &event) {
          if (trajectory)
            trajectory->event(event);
        },
        [&](const std::string &why) {
          progress.clear();
          llvm::errs() << "optiml-clang: remark: " << why << "\n";
        },
        texts);
  }
  if (asking)
    proposer = asking.get();
  auto result = runSearch(**space, *proposer, **evaluator, settings, memory.get(), &observers);
  progress.clear();
  if (!result)
    return result.takeError();
  clock.ended("search");

  Outcome outcome;
  nlohmann::json settled = nlohmann::json::object();
  backend->settle(task, *result, settled);
  clock.ended("settle");
  outcome.summary = toJson(*result);
  outcome.summary.update(settled);
  outcome.summary["gpu"] = backend->gpuName();
  outcome.summary["otherSizes"] = backend->otherSizes();
  outcome.summary["notes"] = backend->notes();
  outcome.summary["originalFaults"] = backend->originalFaults();
  outcome.summary["trajectory"] = trajectory ? trajectory->path() : "";
  outcome.summary["baselineSeconds"] = result->baseline.measurement.time.seconds;
  outcome.summary["bestSeconds"] = result->best.measurement.time.seconds;
  outcome.summary["recipeText"] = recipeText(result->best.recipe);
  if (asking) {
    outcome.summary["proposer"] = asking->summary();
    outcome.summary["models"] = models->summary();
    outcome.summary["texts"] = textsOf(result->best.recipe, *texts);
  }
  outcome.summary["evaluations"] = result->statistics.evaluations;
  outcome.summary["stopText"] = stopReasonText(result->stop);
  outcome.summary["bottleneck"] = result->best.measurement.bottleneck;
  auto host = Program::parse(device.path(), task.text, options, toolchain, View::Host);
  if (!host)
    return host.takeError();
  Variant variant;
  variant.path = device.path();
  variant.original = variant.text = task.text;
  if (result->improved)
    variant = limitedToSizes(*result->best.variant, performance);
  LoopTrial loops = tryLoops(task, *backend, device, **host, variant,
                             fused.gain() * (result->improved ? result->best.speedup() : 1));
  addLoops(loops, outcome.summary);
  addFusions(fused, outcome.summary);
  clock.ended("loops");
  if (result->improved || !loops.rewrites.empty() || fused.device) {
    std::map<std::string, std::string> summaries;
    for (const KernelRewrite &rewrite : variant.rewrites)
      summaries[rewrite.original] =
          llvm::formatv("program's kernels {0:f2} times faster, {1} {2}{3}", result->best.speedup(),
                        backend->measures() ? "measured on" : "predicted for", backend->gpuName(),
                        rewrite.testedOnly ? "; a language model's text, tested and not proven" : "");
    auto emitted = emitProgram(variant, **host, path, summaries, loops.rewrites);
    if (!emitted)
      return emitted.takeError();
    for (const std::string &remark : emitted->remarks)
      llvm::errs() << remark << "\n";
    outcome.improved = emitted->dispatched > 0 || fused.device;
    if (fused.device && loops.rewrites.empty()) {
      auto times = emitted->dispatched ? backend->timeProgram(task, emitted->text) : llvm::Expected<ProgramTimes>(fused.times);
      if (!times)
        return times.takeError();
      addTimes(*times, outcome.summary);
      if (!(times->before >= leastProgramGain(task, *backend) * times->after))
        outcome.summary["kept"] = llvm::formatv("with launches fused its kernels are {0:f2} times as fast", times->before / times->after).str();
    }
    if (!outcome.improved)
      outcome.summary["kept"] = "a faster variant was found, but no launch can be redirected to it";
    else if (outcome.summary.contains("kept")) // what was found is not worth new code
      outcome.improved = false;
    else if (llvm::Error e = backend->checkProgram(task, emitted->text, outcome.summary))
      outcome.summary["kept"] = llvm::toString(std::move(e));
    outcome.improved = !outcome.summary.contains("kept");
    if (outcome.improved)
      outcome.emitted = emitted->text;
  }
  outcome.summary["replaced"] = outcome.improved;
  clock.ended("program");
  outcome.summary["phaseSeconds"] = clock.seconds;
  if (trajectory)
    if (llvm::Error e = trajectory->finish(outcome.summary))
      llvm::errs() << "optiml-clang: warning: " << llvm::toString(std::move(e)) << "\n";
  if (!kernels.empty()) {
    // Measured, and not in front at the end: then no recipe of this search is worth starting another with.
    bool trusted = backend->measures() ? outcome.improved : !outcome.summary.contains("kept");
    if (llvm::Error e = rememberSearch(*store, kernels, origin, lessons, *result, trusted))
      llvm::errs() << "optiml-clang: warning: nothing was learnt from this search: " << llvm::toString(std::move(e)) << "\n";
  }
  outcome.recipe = result->best.recipe;
  outcome.cancelled = result->stop == StopReason::Cancelled;
  return outcome;
}

void Session::printSummary(const Outcome &outcome) const {
  const nlohmann::json &s = outcome.summary;
  auto number = [&](const char *name) { return s.value(name, 0.0); };
  auto word = [&](const char *name) { return s.value(name, std::string()); };
  double baseline = number("baselineSeconds"), best = number("bestSeconds");
  llvm::raw_ostream &os = llvm::errs();
  os << "OptiML: " << path << ": ";
  bool measured = s.value("measured", false);
  std::string verb = measured ? "measured on " : "predicted for ";
  if (!outcome.improved) {
    std::string reason = "no verified variant is ";
    reason += measured ? "surely faster" : llvm::formatv("predicted to be {0:f2} times faster", flags.margin).str();
    os << "the original stays: " << s.value("kept", reason) << " (baseline " << timeText(baseline) << ", " << verb << word("gpu") << "; " << s.value("evaluations", 0)
       << " evaluations; " << word("stopText") << (fromStore ? "; from the store)\n" : ")\n");
  } else {
    os << llvm::formatv("{0:f2} times faster, {1}{2}\n", best > 0 ? baseline / best : 0, verb, word("gpu"));
    os << "  recipe:     " << word("recipeText") << "\n";
    os << "  kernels:    " << timeText(baseline) << " -> " << timeText(best) << " (" << (measured ? "measured" : "predicted");
    if (s.contains("speedupLow"))
      os << llvm::formatv(", 95 % interval {0:f2} to {1:f2}", number("speedupLow"), number("speedupHigh"));
    os << "; limited by " << word("bottleneck") << ")\n";
    if (s.contains("programSpeedup"))
      os << llvm::formatv("  program:    {0:f2} times faster in all its kernels ({1} -> {2}); same exit code and words",
                          number("programSpeedup"), timeText(number("programSeconds")),
                          timeText(number("programSecondsOptimized")))
         << (s.contains("programNumbers") ? ", numbers such as " + word("programNumbers") : "") << "\n";
    os << "  verified:   " << word("verified");
    if (s.contains("otherSizes") && !s["otherSizes"].empty()) {
      os << ", sizes";
      for (const auto &sizes : s["otherSizes"])
        os << " [" << sizes.get<std::string>() << "]";
    }
    os << "\n";
    if (s.contains("texts") && !s["texts"].empty())
      os << "  tested:     a kernel's text is a language model's: tested, not proven; other sizes run the original\n";
    os << "  search:     " << s.value("evaluations", 0) << " evaluations; " << word("stopText")
       << (fromStore ? " (from the store)" : "") << "\n";
  }
  if (s.contains("proposer") && s["proposer"].is_object()) {
    const nlohmann::json &p = s["proposer"];
    os << llvm::formatv("  models:     {0}; {1} actions proposed, {2} not legal; {3} kernels and {4} repairs written, {5} passed",
                        word("models"), p.value("proposed", 0u), p.value("dropped", 0u), p.value("kernelTexts", 0u),
                        p.value("repairs", 0u), p.value("textsPassed", 0u));
    if (unsigned judged = p.value("judged", 0u))
      os << llvm::formatv("; {0} of {1} diagnoses differ from the rules'", p.value("disagreed", 0u), judged);
    os << "\n";
  }
  if (s.contains("originalFaults"))
    for (const auto &fault : s["originalFaults"])
      os << "  warning:    the original itself is faulty, and its results are compared only where they are stable: "
         << fault.get<std::string>() << "\n";
  if (flags.verbose && s.contains("phaseSeconds")) {
    os << "  time:      ";
    for (const auto &[phase, seconds] : s["phaseSeconds"].items())
      os << llvm::formatv(" {0} {1:f1} s", phase, seconds.get<double>());
    os << "\n";
  }
  if (flags.verbose && s.contains("notes"))
    for (const auto &note : s["notes"])
      os << "  note:       " << note.get<std::string>() << "\n";
  if (!flags.emit.empty() && outcome.improved)
    os << "  new source: " << flags.emit << "\n";
  if (!word("trajectory").empty())
    os << "  trajectory: " << word("trajectory") << "\n";
}

int Session::finish(const Outcome &outcome) {
  if (!flags.emit.empty())
    if (llvm::Error e = writeFileAtomically(flags.emit, outcome.improved ? withoutLineDirectives(outcome.emitted) : text)) {
      llvm::errs() << "optiml-clang: error: --optiml-emit: " << llvm::toString(std::move(e)) << "\n";
      return 1;
    }
  printSummary(outcome);
  if (!outcome.improved) {
    auto code = compileOriginal(toolchain, arguments);
    if (code)
      return *code;
    llvm::errs() << "optiml-clang: error: " << llvm::toString(code.takeError()) << "\n";
    return 1;
  }
  auto code = compileReplaced(toolchain, arguments, path, outcome.emitted);
  if (code && *code == 0)
    return 0;
  return fallBack(code ? "nvcc did not accept the rewritten program" : llvm::toString(code.takeError()));
}

} // namespace

int optiml::searchProgram(int argc, char **argv) {
  OwnFlags flags;
  std::vector<std::string> rest;
  std::string error;
  if (!parseOwnFlags({argv + 1, argv + argc}, processEnvironment(), flags, rest, error)) {
    llvm::errs() << "optiml-clang: error: " << error << "\n";
    return 1;
  }
  if (flags.isMemoryCommand())
    return runMemoryCommand(flags);
  auto toolchain = Toolchain::find(argv[0]);
  if (!toolchain) {
    llvm::errs() << "optiml-clang: error: " << llvm::toString(toolchain.takeError()) << "\n";
    return 1;
  }
  std::signal(SIGINT, onInterrupt);
  std::signal(SIGTERM, onInterrupt);
  return Session(std::move(flags), std::move(rest), std::move(*toolchain)).run();
}
