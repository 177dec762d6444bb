//===- FuseTrial.cpp - fusing launches, tried out -------------------------===//
#include "ProgramTrial.h"
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/ActionSpace/ProgramRewrites.h"
#include "optiml/ActionSpace/Registry.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Core/Hash.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>
#include <regex>

using namespace optiml;

/// Transforms that spread a kernel's work over threads or keep what it reads on the chip, alternatives side by side:
/// what one of them gains is more than what fusing does.
static const std::vector<std::vector<llvm::StringRef>> essential = {{"distribute-loop", "split-reduction"},
                                                                    {"privatize-atomic"},
                                                                    {"transpose-through-shared"},
                                                                    {"stage-window", "stage-shared"}};

static bool hasSite(const KernelState &state, llvm::ArrayRef<llvm::StringRef> transforms) {
  return llvm::any_of(transforms, [&](llvm::StringRef name) { return !findTransform(name)->sites(state).empty(); });
}

// Less is no work for several threads: a small window, say.
static constexpr int64_t fewIterations = 64;

/// Of the loops in `s`, nested ones times those around them; at most `fewIterations`, and as many where they are not
/// known.
static int64_t iterationsIn(const KernelModel &model, Stmt &s) {
  int64_t inner = 1;
  for (const StmtRef &child : s.body)
    inner = std::max(inner, iterationsIn(model, *child));
  if (!isLoop(s))
    return inner;
  const auto counted = asCountedLoop(s);
  const auto length = counted ? (model.poly(counted->upper) - model.poly(counted->lower)).constant() : std::nullopt;
  return length ? std::min(fewIterations, std::clamp<int64_t>(*length, 1, fewIterations) * inner / counted->step)
                : fewIterations;
}

static bool hasLongLoop(const KernelState &state) {
  return iterationsIn(KernelModel(*state.tree), *state.tree->body) >= fewIterations;
}

/// Which of them a kernel could have, by their place in `essential`. Tables of a block are offered once it is fixed.
static std::set<size_t> essentialOf(const KernelState &state) {
  std::set<size_t> result;
  const std::optional<KernelState> fixed = withFixedBlock(state);
  for (size_t i = hasLongLoop(state) ? 0 : 1; i < essential.size(); ++i)
    if (hasSite(state, essential[i]) ||
        (fixed && essential[i].front() == "privatize-atomic" && hasSite(*fixed, essential[i])))
      result.insert(i);
  return result;
}

/// What one kernel of all parts would lose; empty: nothing.
static std::string lostBy(const FusionCandidate &fusion) {
  const std::set<size_t> together = essentialOf(fusion.fused);
  std::set<size_t> first; // of the parts that have some
  for (const KernelState &part : fusion.parts) {
    const std::set<size_t> own = essentialOf(part);
    for (size_t i : own)
      if (!together.count(i))
        return ("one kernel would have to do without " + essential[i].front() + " of " + part.rewrite.original).str();
    if (!first.empty() && !own.empty() && own != first)
      return "each gains by transforms of its own, which want other blocks";
    if (!own.empty())
      first = own;
  }
  return "";
}

static std::string partNames(const FusionCandidate &fusion) {
  return llvm::join(llvm::map_range(fusion.parts, [](const KernelState &part) { return part.rewrite.original; }), "+");
}

/// At most so much of the GPU's time goes with the launches: that of all parts but the longest.
static double mostSaved(const FusionCandidate &fusion, const Backend &backend) {
  double sum = 0, longest = 0;
  for (const KernelState &part : fusion.parts) {
    const std::optional<KernelUse> use = backend.timeOf(part.rewrite.originalSymbol);
    if (!use)
      return 1;
    sum += use->share;
    longest = std::max(longest, use->share);
  }
  return sum - longest;
}

// Threads of a large GPU: 132 multiprocessors with 2048 each.
static constexpr double resident = 1 << 18;

/// More threads are what its kernels lack.
static bool needsThreads(const FusionCandidate &fusion, const Backend &backend) {
  return fusion.gainsByThreads && llvm::any_of(fusion.parts, [&](const KernelState &part) {
           return llvm::any_of(backend.performance().launches, [&](const LaunchImage &launch) {
             return launch.kernel == part.rewrite.originalSymbol && double(threadsOf(launch)) < resident / 4;
           });
         });
}

/// One thread does what many did.
static bool losesThreads(const FusedKernel &kernel) { return !kernel.launches.empty() && !kernel.keepsThreads; }

/// How long the launches take with as many threads as the one with the fewest has, before anything else is done to the
/// kernel: what a run of the program costs more.
static double secondsWithFewThreads(const FusionCandidate &fusion, const Backend &backend) {
  std::map<std::string, double> threads, blocks;
  for (const LaunchImage &launch : backend.performance().launches) {
    threads[launch.kernel] = std::max(threads[launch.kernel], double(threadsOf(launch)));
    blocks[launch.kernel] = std::max(blocks[launch.kernel], double(threadsOf(launch)) / launch.block[0]);
  }
  double fewest = resident, seconds = 0;
  for (const KernelState &part : fusion.parts) { // a block whose threads work together becomes one
    const auto &left = threadsWorkTogether(*part.tree) ? blocks : threads;
    if (auto it = left.find(part.rewrite.originalSymbol); it != left.end())
      fewest = std::min(fewest, it->second);
  }
  for (const KernelState &part : fusion.parts) {
    const std::optional<KernelUse> use = backend.timeOf(part.rewrite.originalSymbol);
    auto it = threads.find(part.rewrite.originalSymbol);
    if (use && it != threads.end())
      seconds += use->seconds * std::min(it->second, resident) / fewest;
  }
  return seconds;
}

/// Launches of a thread an element that are to have one kernel have about as many threads, or else other elements.
static bool haveOtherElements(const FusionCandidate &fusion, const Backend &backend) {
  constexpr double roundedUp = 2; // to whole blocks, along several axes
  double fewest = std::numeric_limits<double>::infinity(), most = 0;
  for (const KernelState &part : fusion.parts)
    for (const LaunchImage &launch : backend.performance().launches)
      if (launch.kernel == part.rewrite.originalSymbol) {
        fewest = std::min(fewest, double(threadsOf(launch)));
        most = std::max(most, double(threadsOf(launch)));
      }
  return fusion.fusion.kernel.keepsThreads && most > roundedUp * fewest;
}

// Fused kernels that are no slower as they are may still be rewritten better than their parts.
static constexpr double notSlower = 0.99;
// Loops of launches that are one launch are faster as they are: else they took place as before.
static constexpr double loopsFaster = 1.02;
// Turns of the same threads: how fast these become is for a search to say, and observing the program tells whether they
// run at all.
static constexpr double turnsAsFast = 0.95;
// Each costs a compilation and some runs of the program.
static constexpr size_t mostTrials = 6;
// What cannot save more than this share of the GPU's time is not tried; other kernels may become much faster, and this
// share larger.
static constexpr double leastSaved = 0.002;
// Of the search's time that is left, at most so much for all ways of fusing launches: for each the program is run some
// four times.
static constexpr double timeShare = 0.3;
// A run of a fused program may take so much of what is left of that.
static constexpr double runShare = 0.05;

static double leastGainOf(llvm::ArrayRef<FusionCandidate> fusions) {
  double least = notSlower;
  for (const FusionCandidate &fusion : fusions)
    if (const auto &blocks = fusion.fusion.kernel.blocks) {
      if (!blocks->sameThreads)
        return loopsFaster;
      least = turnsAsFast;
    }
  return least;
}

namespace {

class Trial {
public:
  Trial(const SearchTask &task, Backend &backend, const Program &device, FusionsAhead::Made &ahead)
      : task(task), backend(backend), device(device), ahead(ahead), host(*ahead.host) {}
  llvm::Expected<FuseTrial> run();
  llvm::Expected<FuseTrial> runOverRows(const FuseTrial &plain);
  std::vector<std::string> notes;

private:
  const SearchTask &task;
  Backend &backend;
  const Program &device;
  FusionsAhead::Made &ahead;
  const Program &host;

  std::vector<FusionCandidate> candidates(bool overRows);
  llvm::Expected<FuseTrial> written(const std::vector<FusionCandidate> &fusions);
  llvm::Expected<FuseTrial> timed(const std::vector<FusionCandidate> &fusions);
  llvm::Expected<FuseTrial> timedAndCompared(const std::vector<FusionCandidate> &fusions, double leastGain);
  std::vector<FusionCandidate> thoseThatPay(std::vector<FusionCandidate> fusions);
};

} // namespace

/// As the program was seen to launch the kernels.
static SameGeometry observedGeometry(const Workload &observed) {
  using Geometry = std::pair<std::array<uint32_t, 3>, std::array<uint32_t, 3>>;
  std::map<std::string, std::set<Geometry>> geometries;
  for (const LaunchImage &launch : observed.launches)
    geometries[launch.kernel].emplace(launch.grid, launch.block);
  return [geometries](const LaunchSite &a, const LaunchSite &b) {
    const auto first = geometries.find(a.symbol), second = geometries.find(b.symbol);
    const bool known = first != geometries.end() && second != geometries.end();
    return isSpelledAlike(a, b) || (known && first->second == second->second);
  };
}

/// What can be fused and leaves the search what it needs.
static FoundFusions usefulFusions(const SearchTask &task, const Program &device, const Program &host,
                                  const SameGeometry &alike, bool overRows) {
  std::optional<std::regex> filter;
  if (!task.flags.kernel.empty())
    filter.emplace(task.flags.kernel, std::regex::extended); // checked when the flag was read
  FoundFusions found = findFusions(
      device, host, task.flags.fp.isStrict(),
      [&](const std::string &kernel) { return !filter || std::regex_search(kernel, *filter); }, alike, overRows);
  std::erase_if(found.fusions, [&](const FusionCandidate &fusion) {
    const std::string lost = fusion.fusion.kernel.blocks ? "" : lostBy(fusion);
    if (!lost.empty())
      found.notes.push_back(partNames(fusion) + " stay apart, for " + lost);
    return !lost.empty();
  });
  return found;
}

static llvm::Expected<std::string> textWith(const SearchTask &task, const Program &host,
                                            const std::vector<FusionCandidate> &fusions) {
  auto emitted = emitFusions(host, task.options.inputs.front(), fusionsOf(fusions));
  if (!emitted)
    return emitted.takeError();
  return std::move(emitted->text);
}

/// Fusions over rows go with the others that are made; without any over rows, none.
static void keepWithRows(std::vector<FusionCandidate> &fusions, const std::set<unsigned> &fusedWithout) {
  auto isOverRows = [](const FusionCandidate &fusion) { return losesThreads(fusion.fusion.kernel); };
  if (llvm::none_of(fusions, isOverRows))
    fusions.clear();
  std::erase_if(fusions, [&](const FusionCandidate &fusion) {
    return !isOverRows(fusion) && !fusedWithout.count(fusion.fusion.launches.front());
  });
}

FusionsAhead::FusionsAhead(const SearchTask &task, Backend &backend, const Program &device) : stop(0, task.cancel()) {
  making = std::async(std::launch::async, [&task, &backend, &device, this] {
    Made made;
    if (task.isRecorded() || (device.launches().size() < 2 && findLaunchLoops(device).empty()))
      return made;
    auto host = Program::parse(device.path(), task.text, task.options, task.toolchain, View::Host);
    if (!host) {
      made.why = llvm::toString(host.takeError());
      return made;
    }
    made.host = std::move(*host);
    if (!backend.measures() || stop.passed())
      return made;
    // What cannot be written or built is tried again, with a message. One after the other: the program is running.
    auto build = [&](const std::vector<FusionCandidate> &fusions, const char *name) {
      auto text = fusions.empty() ? llvm::Expected<std::string>("") : textWith(task, *made.host, fusions);
      if (!text)
        return llvm::consumeError(text.takeError());
      if (text->empty())
        return;
      std::shared_future<std::string> before;
      if (!made.built.empty())
        before = made.built.back().executable;
      Made::Built ahead;
      ahead.text = *text;
      ahead.executable = std::async(std::launch::async, [&task, &backend, this, text = *text, name, before] {
        if (before.valid())
          before.wait();
        auto executable = backend.buildProgram(task, text, name, stop.flag());
        if (executable)
          return *executable;
        llvm::consumeError(executable.takeError());
        return std::string();
      });
      backend.compileAhead(task, *text);
      ahead.device = std::async(std::launch::async, [&task, path = device.path(), text = *text] {
        auto parsed = Program::parse(path, text, task.options, task.toolchain, View::Device);
        if (parsed)
          return std::move(*parsed);
        llvm::consumeError(parsed.takeError());
        return std::unique_ptr<Program>();
      });
      made.built.push_back(std::move(ahead));
    };
    made.found = usefulFusions(task, device, *made.host, isSpelledAlike, /*overRows=*/false);
    build(made.found->fusions, "program-fused");
    std::set<unsigned> fused;
    for (const FusionCandidate &fusion : made.found->fusions)
      fused.insert(fusion.fusion.launches.begin(), fusion.fusion.launches.end());
    made.overRows = usefulFusions(task, device, *made.host, isSpelledAlike, /*overRows=*/true);
    std::vector<FusionCandidate> rows = made.overRows->fusions;
    keepWithRows(rows, fused);
    build(rows, "program-rows");
    return made;
  });
}

FusionsAhead::~FusionsAhead() { stop.raise(); }

FusionsAhead::Made &FusionsAhead::get() {
  if (!made)
    made = making.get();
  return *made;
}

/// Of those that save something.
std::vector<FusionCandidate> Trial::candidates(bool overRows) {
  const SameGeometry alike = observedGeometry(backend.performance());
  const std::vector<LaunchSite> &launches = host.launches();
  const std::optional<FoundFusions> &foundAhead = overRows ? ahead.overRows : ahead.found;
  bool foreseen = foundAhead.has_value();
  for (size_t i = 0; i + 1 < launches.size(); ++i)
    foreseen &= isSpelledAlike(launches[i], launches[i + 1]) == alike(launches[i], launches[i + 1]);
  FoundFusions found = foreseen ? *foundAhead : usefulFusions(task, device, host, alike, overRows);
  notes = std::move(found.notes);
  std::erase_if(found.fusions, [&](const FusionCandidate &fusion) {
    const double saved = fusion.fusion.kernel.blocks ? 1 : mostSaved(fusion, backend);
    if (saved < leastSaved)
      notes.push_back(partNames(fusion) + " stay apart, for " +
                      llvm::formatv("that could save {0:f2} % of the GPU's time at most", 100 * saved).str());
    return saved < leastSaved;
  });
  std::erase_if(found.fusions, [&](const FusionCandidate &fusion) {
    if (needsThreads(fusion, backend)) {
      notes.push_back(partNames(fusion) + " stay apart: they gain more by more threads");
      return true;
    }
    if (haveOtherElements(fusion, backend)) {
      notes.push_back(partNames(fusion) + " stay apart: their launches have other numbers of threads");
      return true;
    }
    const double seconds = losesThreads(fusion.fusion.kernel) ? secondsWithFewThreads(fusion, backend) : 0;
    const bool isLong = backend.measures() && seconds > runShare * task.deadline->remaining();
    if (isLong)
      notes.push_back(partNames(fusion) + " stay apart, for " +
                      llvm::formatv("few threads would take some {0:f1} s for all of the work", seconds).str());
    return isLong;
  });
  return std::move(found.fusions);
}

/// The program with these fused, and its executable where programs are run.
llvm::Expected<FuseTrial> Trial::written(const std::vector<FusionCandidate> &fusions) {
  auto text = textWith(task, host, fusions);
  if (!text)
    return text.takeError();
  FuseTrial trial;
  trial.text = std::move(*text);
  auto built = llvm::find_if(ahead.built, [&](const auto &other) { return other.text == trial.text; });
  if (built != ahead.built.end()) {
    trial.executable = built->executable.get();
    if (built->device.valid())
      trial.device = built->device.get();
  }
  if (trial.executable.empty())
    if (llvm::Error e = backend.buildProgram(task, trial.text, "program-" + contentHash(trial.text), task.cancel())
                            .moveInto(trial.executable))
      return std::move(e);
  for (const FusionCandidate &fusion : fusions) {
    trial.kernels.push_back(partNames(fusion));
    trial.names.push_back(fusion.fusion.kernel.name);
    trial.launches.insert(fusion.fusion.launches.begin(), fusion.fusion.launches.end());
  }
  return std::move(trial);
}

/// Of the floating-point numbers that the parts write, which may be contracted in other ways; 0: there are none.
/// Nothing: they have several sizes, so that the results cannot be told apart.
static std::optional<unsigned> roundedBytes(const std::vector<FusionCandidate> &fusions) {
  std::set<unsigned> sizes;
  for (const FusionCandidate &fusion : fusions)
    for (const Param &param : fusion.fused.tree->params)
      if (param.type.isPointer() && param.type.pointee && param.type.pointee->isFloat())
        sizes.insert(param.type.pointee->bytes);
  if (sizes.size() > 1 || (sizes.size() == 1 && *sizes.begin() < 4))
    return std::nullopt;
  return sizes.empty() ? 0 : *sizes.begin();
}

llvm::Expected<FuseTrial> Trial::timed(const std::vector<FusionCandidate> &fusions) {
  auto trial = written(fusions);
  if (!trial)
    return trial;
  auto times = backend.timeProgram(task, trial->text, trial->executable);
  if (!times)
    return times.takeError();
  trial->times = *times;
  return trial;
}

/// The program with these fused when it does what the original does and has the gain.
llvm::Expected<FuseTrial> Trial::timedAndCompared(const std::vector<FusionCandidate> &fusions, double leastGain) {
  auto trial = written(fusions);
  if (!trial)
    return trial;
  auto timed = timeAndCompare(task, backend, trial->text, trial->executable, roundedBytes(fusions), leastGain);
  if (!timed)
    return timed.takeError();
  trial->times = timed->times;
  trial->verified = std::move(timed->verified);
  if (trial->device)
    return trial;
  auto fused = Program::parse(device.path(), trial->text, task.options, task.toolchain, View::Device);
  if (!fused)
    return fused.takeError();
  trial->device = std::move(*fused);
  return trial;
}

/// Those that do no harm by themselves.
std::vector<FusionCandidate> Trial::thoseThatPay(std::vector<FusionCandidate> fusions) {
  std::erase_if(fusions, [&](const FusionCandidate &fusion) {
    auto alone = timed({fusion});
    std::string why = !alone ? llvm::toString(alone.takeError())
                      : alone->gain() < leastGainOf(fusion)
                          ? llvm::formatv("the program's kernels are {0:f2} times as fast", alone->gain()).str()
                          : "";
    if (!why.empty())
      notes.push_back(partNames(fusion) + " stay apart: " + why);
    return !why.empty();
  });
  return fusions;
}

llvm::Expected<FuseTrial> Trial::run() {
  std::vector<FusionCandidate> fusions = candidates(/*overRows=*/false);
  if (fusions.empty())
    return FuseTrial();
  auto trial = timedAndCompared(fusions, leastGainOf(fusions));
  if (trial || fusions.size() == 1 || fusions.size() > mostTrials)
    return trial;
  size_t all = fusions.size();
  fusions = thoseThatPay(std::move(fusions));
  if (fusions.size() == all)
    return trial;
  llvm::consumeError(trial.takeError());
  return fusions.empty() ? FuseTrial() : timedAndCompared(fusions, leastGainOf(fusions));
}

llvm::Expected<FuseTrial> Trial::runOverRows(const FuseTrial &plain) {
  std::vector<FusionCandidate> fusions = candidates(/*overRows=*/true);
  keepWithRows(fusions, plain.launches);
  return fusions.empty() ? FuseTrial() : timedAndCompared(fusions, 0);
}

FuseTrials optiml::tryFusions(const SearchTask &task, Backend &backend, const Program &device, bool overRows,
                              FusionsAhead &ahead, const Deadline &budget) {
  FuseTrials result;
  FusionsAhead::Made &made = ahead.get();
  if (!made.host && made.why.empty()) // there is nothing to fuse
    return result;
  if (!made.host) {
    result.plain.notes.push_back("launches that follow one another stay apart: " + made.why);
    return result;
  }
  const double needed = made.built.empty() ? backend.buildSeconds() : 0;
  if (timeShare * budget.remaining() < needed) {
    result.plain.notes.push_back(llvm::formatv("launches that follow one another stay apart: building the program "
                                               "takes {0:f1} s, which is too much of the time that is left",
                                               needed));
    return result;
  }
  if (!made.built.empty())
    made.built.front().executable.wait(); // it is on its way since the original was observed
  Deadline share(std::max(1e-3, timeShare * budget.remaining()), task.cancel());
  auto within = [&](auto attempt) {
    SearchTask limited = task;
    limited.deadline = &share;
    Trial trial(limited, backend, device, made);
    llvm::Expected<FuseTrial> tried = attempt(trial);
    FuseTrial answer;
    if (tried)
      answer = std::move(*tried);
    else
      trial.notes.push_back("launches that follow one another stay apart: " + llvm::toString(tried.takeError()));
    answer.notes = std::move(trial.notes);
    return answer;
  };
  result.plain = within([](Trial &trial) { return trial.run(); });
  if (overRows && !share.passed()) // the same program again would take as long
    result.overRows = within([&](Trial &trial) { return trial.runOverRows(result.plain); });
  return result;
}
