//===- SearchRun.cpp - one search of one text -----------------------------===//
#include "SearchRun.h"
#include "ApplyRecipes.h"
#include "ProgramTrial.h"
#include "SearchStory.h"
#include "SourceRecipes.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace optiml;

// Of the time that is left, at most so much for what comes after the search.
static constexpr double concludingShare = 0.45;
// A program is built beside the search for so many processors.
static constexpr unsigned jobsPerBuild = 4, mostBuilds = 4;

static void warn(const std::string &what, llvm::Error why) {
  llvm::errs() << "optiml-clang: warning: " << what << ": " << llvm::toString(std::move(why)) << "\n";
}

/// Whether a loop on the host can have launched one of the kernels.
static bool launchesAgain(const Workload &workload) {
  std::map<std::string, double> launches;
  for (const LaunchImage &launch : workload.launches)
    launches[launch.kernel] += launch.weight;
  return llvm::any_of(launches, [](const auto &kernel) { return kernel.second > 1; });
}

std::map<std::string, uint64_t> optiml::leastThreads(const Workload &performance) {
  std::map<std::string, uint64_t> least;
  for (const LaunchImage &launch : performance.launches) {
    auto [known, isNew] = least.try_emplace(launch.kernel, threadsOf(launch));
    if (!isNew)
      known->second = std::min(known->second, threadsOf(launch));
  }
  return least;
}

Variant optiml::limitedToLaunches(const Variant &variant, const Workload &performance, ThreadRange threads) {
  std::map<std::string, ThreadRange> limits;
  for (const auto &[symbol, least] : leastThreads(performance))
    limits[symbol] = limitsOf(least, threads);
  return limitedTo(variant, limits);
}

std::map<std::string, std::string> optiml::gainTexts(const Variant &variant, double gain, const Backend &backend) {
  std::map<std::string, std::string> texts;
  for (const KernelRewrite &rewrite : variant.rewrites)
    if (gain > 0)
      texts[rewrite.original] = gainText(gain, backend.measures(), backend.gpuName(), rewrite.testedOnly);
  return texts;
}

SearchRun::~SearchRun() { backend.whenVerified(nullptr); }

llvm::Error SearchRun::parseHost() {
  if (host)
    return llvm::Error::success();
  auto parsed = Program::parse(device.path(), task.text, task.options, task.toolchain, View::Host);
  if (!parsed)
    return parsed.takeError();
  host = std::move(*parsed);
  return llvm::Error::success();
}

llvm::Error SearchRun::findLoopsOfLaunches() {
  if (task.isRecorded() || !backend.sawWholeProgram() || !launchesAgain(backend.performance()))
    return llvm::Error::success();
  if (llvm::Error e = parseHost())
    return e;
  loops.emplace(task, backend, findLoops(task, device, *host));
  return llvm::Error::success();
}

SearchSettings SearchRun::settings() const {
  const OwnFlags &flags = task.flags;
  SearchSettings settings;
  if (auto strategy = strategyFromName(flags.strategy))
    settings.strategy = *strategy;
  settings.evaluations = limits.evaluations;
  settings.seconds = 0;
  if (std::isfinite(limits.budget.remaining())) {
    double keptBack = 0;
    if (backend.measures() || fused.device || withLoops())
      keptBack = std::min(concludingShare * limits.budget.remaining(), backend.concludingSeconds(withLoops()));
    settings.seconds = std::max(1e-3, limits.budget.remaining() - keptBack); // at least a moment: 0 would be no limit
  }
  settings.seed = flags.seed;
  settings.jobs = task.jobs();
  settings.margin = flags.margin;
  settings.simplerWithin = 1.02;
  for (const KernelDecl &decl : device.kernels())
    if (auto own = launchWeights(backend.performance(), decl.symbol); !own.empty())
      settings.launches.emplace(decl.name, std::move(own));
  backend.configure(settings);
  settings.cancel = &means.interrupted;
  return settings;
}

void SearchRun::openTrajectory(const SearchSettings &settings, const KernelSpace &space) {
  const bool stored = task.flags.store != "none";
  if (!stored && !task.flags.report.any())
    return;
  const std::string file =
      llvm::formatv("{0}/trajectories/{1}-{2}.jsonl", stored ? storeFolderOf(task.flags) : task.folder,
                    llvm::sys::path::stem(path()), key.search.substr(0, 12));
  nlohmann::json about = {{"file", device.path()},
                          {"gpu", backend.gpuName()},
                          {"backend", backend.storeName()},
                          {"settings", settings.str()},
                          {"arguments", task.flags.programArgs},
                          {"otherSizes", backend.otherSizes()},
                          {"version", searchVersion}};
  about.update(storyOf(task, device, space, backend));
  if (nlohmann::json matches = proposers.memoryMatches(); !matches.is_null())
    about["memory"] = matches;
  auto created = Trajectory::create(file, about);
  if (created)
    trajectory = std::move(*created);
  else
    warn("no trajectory is written", created.takeError());
}

/// What the flags or the source ask for.
llvm::Error SearchRun::setFirst(SearchSettings &settings, const KernelSpace &space) {
  if (const std::string &text = task.flags.recipe; !text.empty()) {
    auto recipe = parseRecipe(text);
    if (!recipe)
      return makeError("--optiml-recipe: {0}", llvm::toString(recipe.takeError()));
    settings.first = {std::move(*recipe)};
    settings.openingBook = false;
    settings.evaluations = 1;
    return llvm::Error::success();
  }
  settings.outlook = proposers.outlook();
  for (const KernelDecl &decl : device.kernels()) {
    if (decl.directive.recipe.empty() || !space.kernel(decl.name))
      continue;
    if (auto recipe = parseRecipe(decl.directive.recipe))
      settings.first.push_back(std::move(*recipe));
    else
      warn(llvm::formatv("{0}:{1}: the recipe at {2} is left out", decl.file, decl.line, decl.name),
           recipe.takeError());
  }
  return llvm::Error::success();
}

llvm::Expected<SearchResult> SearchRun::search(KernelSpace &space, Evaluator &evaluator) {
  SearchSettings settings = this->settings();
  Progress &progress = means.progress;
  auto say = [&](const std::string &line) {
    progress.clear();
    llvm::errs() << "optiml-clang: " << line << "\n";
  };
  if (means.store && task.flags.memory == MemoryUse::On)
    if (llvm::Error e =
            proposers.addMemory(*means.store, space, device, backend.performance(),
                                {key.context, backend.gpuName(), backend.measures() ? "measured" : "model"}))
      warn("the search goes on without memory", std::move(e));
  if (llvm::Error e = setFirst(settings, space))
    return std::move(e);
  openTrajectory(settings, space);
  if (means.models && task.flags.recipe.empty())
    proposers.addModels(
        task, device, backend, space, *means.models,
        [&](const nlohmann::json &event) {
          if (trajectory)
            trajectory->event(event);
        },
        [say](const std::string &why) { say("remark: " + why); });
  ObserverList observers;
  observers.add(&proposers.recorder());
  observers.add(&progress);
  if (trajectory)
    observers.add(trajectory.get());
  std::unique_ptr<StoredEvaluations> memory;
  if (means.store)
    memory = std::make_unique<StoredEvaluations>(*means.store, key.context, [&](const std::string &why) {
      say("warning: the search goes on without its store: " + why);
    });
  const Deadline end(settings.seconds, &means.interrupted);
  backend.searchUntil(end.flag());
  progress.phase("searching");
  auto result = runSearch(space, proposers.first(), evaluator, settings, memory.get(), &observers);
  backend.searchUntil(nullptr);
  proposers.stopAsking();
  if (result && result->stop == StopReason::Cancelled)
    say(result->improved
            ? llvm::formatv("interrupted: what is {0:f2} times as fast is kept and compiled; once more, and "
                            "nothing is",
                            result->best.speedup())
                  .str()
            : "interrupted: nothing faster was found yet, so the original is compiled");
  return result;
}

// What trying loops of launches needs is guessed, and mostly less: so much more than what is left is too much.
static constexpr double loopsMayNeed = 2;

/// Whole programs with other loops cannot be run within the time that is left.
void SearchRun::leaveLoopsThatTakeTooLong() {
  const double left = limits.budget.remaining(), needed = backend.concludingSeconds(true);
  if (!withLoops() || !backend.measures() || needed <= loopsMayNeed * left)
    return;
  noLoops =
      llvm::formatv("the loops of launches stay: trying others takes {0:f1} s, and {1:f1} s are left", needed, left);
  loops.reset();
}

void SearchRun::buildBeside() {
  if (!backend.measures() || task.isRecorded())
    return;
  if (withLoops())
    loops->buildBeside([&](const LoopTrials::Loops &replaced) { return emitWith(unchanged(), 0, replaced); },
                       task.jobs());
  auto make = [this](const Variant &variant, const std::atomic<bool> *cancel) {
    auto emitted = emitWith(limited(variant), 0, {});
    return emitted ? backend.buildProgram(task, emitted->text, "program-" + variant.key(), cancel)
                   : llvm::Expected<std::string>(emitted.takeError());
  };
  programs = std::make_unique<BuildBeside>(make, std::clamp(task.jobs() / jobsPerBuild, 1u, mostBuilds), task.cancel());
  backend.whenVerified([this](const Variant &variant) { programs->want(variant); });
}

llvm::Expected<SearchOutcome> SearchRun::run() {
  if (llvm::Error e = findLoopsOfLaunches())
    return std::move(e);
  auto space = createSearchSpace(task, device, backend.performance());
  if (!space)
    return space.takeError();
  means.progress.phase("evaluating the original");
  auto evaluator = backend.evaluator(task);
  if (!evaluator)
    return evaluator.takeError();
  watch.lap("baseline");
  if (double share = backend.roofline(); limits.toBeat > 0 && share > 0 && fused.gain() / share <= limits.toBeat)
    return notApplicable("at their roofline the program's kernels would be {0:f2} times as fast", fused.gain() / share);
  leaveLoopsThatTakeTooLong();
  buildBeside();
  auto result = search(**space, **evaluator);
  if (!result)
    return result.takeError();
  watch.lap("search");
  if (programs && result->improved) // the simplest of the best may not have been the best before
    programs->want(*result->best.variant);

  SearchOutcome outcome;
  nlohmann::json settled = nlohmann::json::object();
  means.progress.phase("settling");
  backend.settle(task, *result, settled);
  backend.whenVerified(nullptr);
  watch.lap("settle");
  if (!task.flags.recipe.empty() && !result->improved &&
      (!result->statistics.evaluations || result->stop == StopReason::Seconds || result->stop == StopReason::Cancelled))
    return makeError("the recipe was not evaluated: it does not apply to what is launched, or there was no time");
  outcome.summary = summaryOf(*result, backend);
  outcome.summary.update(settled);
  outcome.summary["trajectory"] = trajectory ? trajectory->path() : "";
  for (const std::string &kernel : (*space)->kernelNames())
    if (std::string why = (*space)->obstacles(kernel); !why.empty())
      outcome.summary["onlyTuned"][kernel] = why;
  proposers.addTo(outcome.summary, result->best.recipe);
  if (llvm::Error e = emit(*result, outcome))
    return std::move(e);
  std::function<Measurement(const Variant &)> measureSteps;
  if (!backend.measures() && !task.flags.report.page.empty() && !limits.budget.passed())
    measureSteps = [&](const Variant &variant) { return (*evaluator)->evaluate(variant, Fidelity::Model); };
  if (trajectory)
    trajectory->event({{"event", "winner"},
                       {"steps", stepsOf(**space, outcome.recipe, measureSteps)},
                       {"missed", missedIn(**space, outcome.recipe)},
                       {"emitted", withoutLineMarks(outcome.emitted)}});
  conclude(*result, outcome);
  outcome.cancelled = result->stop == StopReason::Cancelled;
  return outcome;
}

Variant SearchRun::unchanged() const {
  Variant variant;
  variant.path = device.path();
  variant.original = variant.text = task.text;
  return variant;
}

Variant SearchRun::limited(const Variant &variant) const {
  return limitedToLaunches(variant, backend.performance(), task.flags.threads);
}

llvm::Expected<EmittedProgram> SearchRun::emitWith(const Variant &variant, double gain,
                                                   const std::vector<LoopRewrite> &replaced) {
  std::lock_guard lock(emitting);
  if (llvm::Error e = parseHost())
    return std::move(e);
  // The launches that were recorded may be another file's.
  std::set<std::string> launchedElsewhere;
  if (task.isRecorded())
    for (const KernelRewrite &rewrite : variant.rewrites)
      if (const KernelDecl *kernel = device.findKernel(rewrite.originalSymbol);
          kernel && !kernel->isTemplate && kernel->decl->isExternallyVisible())
        launchedElsewhere.insert(rewrite.originalSymbol);
  return emitProgram(variant, *host, path(), gainTexts(variant, gain, backend), replaced, launchedElsewhere);
}

llvm::Error SearchRun::emit(const SearchResult &result, SearchOutcome &outcome) {
  // From here on nobody else reads or parses the program.
  const std::string built = result.improved && programs ? programs->take(result.best.variant->key()) : "";
  programs.reset();
  Variant variant = unchanged();
  if (result.improved)
    variant = limited(*result.best.variant);
  auto write = [&](const LoopTrials::Loops &replaced) { return emitWith(variant, result.best.speedup(), replaced); };
  LoopOutcome replaced;
  if (loops)
    replaced = loops->finish(write, result.improved ? &variant : nullptr,
                             fused.gain() * (result.improved ? result.best.speedup() : 1));
  watch.lap("loops");
  nlohmann::json &summary = outcome.summary;
  if (loops)
    for (const auto &[step, seconds] : loops->watch().steps)
      summary["loopSeconds"][step] = seconds;
  if (!noLoops.empty())
    summary["notes"].push_back(noLoops);
  addFusions(fused, summary);
  for (const std::string &note : replaced.notes)
    summary["notes"].push_back(note);
  outcome.recipe = result.best.recipe;
  if (replaced.emitted) {
    SearchOutcome withLoops = outcome;
    if (!replaced.withVariant)
      withLoops.dropRecipe();
    addLoops(replaced, withLoops.summary);
    check(*replaced.emitted, /*isTimed=*/true, replaced.executable, withLoops);
    if (withLoops.improved || (!result.improved && !fused.device)) {
      outcome = std::move(withLoops);
      return llvm::Error::success();
    }
    summary["notes"].push_back("the loops of launches stay: " + withLoops.summary.value("kept", std::string()));
  }
  if (!result.improved && !fused.device)
    return llvm::Error::success();
  auto emitted = write({});
  if (!emitted)
    return emitted.takeError();
  check(*emitted, /*isTimed=*/!fused.device, emitted->text == fused.text ? fused.executable : built, outcome);
  return llvm::Error::success();
}

void SearchRun::check(const EmittedProgram &emitted, bool isTimed, std::string executable, SearchOutcome &outcome) {
  nlohmann::json &summary = outcome.summary;
  auto keep = [&](const std::string &why) { summary["kept"] = why; };
  means.progress.clear();
  for (const std::string &remark : emitted.remarks)
    llvm::errs() << remark << "\n";
  if (!emitted.dispatched && !emitted.entries && !fused.device)
    return keep("a faster variant was found, but no launch can be redirected to it");
  if (executable.empty() && !task.isRecorded())
    if (llvm::Error e =
            backend.buildProgram(task, emitted.text, "program-optimized", task.cancel()).moveInto(executable))
      return keep(llvm::toString(std::move(e)));
  auto paysAs = [&](const ProgramTimes &times) {
    addTimes(times, summary);
    if (times.before >= leastProgramGain(task, backend) * times.after)
      return true;
    // Not worth new code.
    keep(llvm::formatv("with launches fused its kernels are {0:f2} times as fast", times.before / times.after));
    return false;
  };
  // Where programs are run, comparing them times them, too.
  const bool runs = backend.measures() && emitted.dispatched;
  if (!isTimed && !runs) {
    auto times = emitted.dispatched ? backend.timeProgram(task, emitted.text, executable)
                                    : llvm::Expected<ProgramTimes>(fused.times);
    if (!times)
      return keep(llvm::toString(times.takeError()));
    if (!paysAs(*times))
      return;
  }
  if (llvm::Error e = backend.checkProgram(task, emitted.text, executable, summary))
    return keep(llvm::toString(std::move(e)));
  if (!isTimed && runs &&
      !paysAs({summary.value("programSeconds", 0.0), summary.value("programSecondsOptimized", 0.0)}))
    return;
  outcome.improved = true;
  outcome.emitted = emitted.text;
  outcome.executable = executable;
}

void SearchRun::conclude(const SearchResult &result, SearchOutcome &outcome) {
  means.progress.clear();
  nlohmann::json &summary = outcome.summary;
  if (!outcome.improved && !summary.contains("kept") && result.unproven >= task.flags.margin)
    summary["kept"] =
        llvm::formatv("a variant that is predicted to be {0:f2} times faster could not be verified in time",
                      result.unproven)
            .str();
  summary["replaced"] = outcome.improved;
  if (outcome.improved && !task.flags.saveRecipes.empty())
    if (llvm::Error e = saveRecipes(task, device, backend, result, leastThreads(backend.performance()), summary))
      warn("not every recipe is saved", std::move(e));
  watch.lap("program");
  summary["phaseSeconds"] = nlohmann::json::object();
  for (const auto &[phase, seconds] : watch.steps)
    summary["phaseSeconds"][phase] = summary["phaseSeconds"].value(phase, 0.0) + seconds;
  if (trajectory)
    if (llvm::Error e = trajectory->finish(summary))
      llvm::errs() << "optiml-clang: warning: " << llvm::toString(std::move(e)) << "\n";
  // Measured, and not in front at the end: then no recipe of this search is worth starting another with.
  bool trusted = backend.measures() ? outcome.improved : !summary.contains("kept");
  if (llvm::Error e = proposers.remember(result, trusted))
    warn("nothing was learnt from this search", std::move(e));
}
