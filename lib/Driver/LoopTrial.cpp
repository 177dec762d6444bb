//===- LoopTrial.cpp - replacing loops of launches, tried out -------------===//
#include "LoopTrial.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/TimeSteps.h"
#include "llvm/ADT/STLExtras.h"
#include <regex>
#include <set>

using namespace optiml;

// Of the time that is left, for trying other tiles once there is one that is faster.
static constexpr double tilesShare = 0.3;
// Where none has been faster yet, so many are tried; so many are built beside the search.
static constexpr unsigned mostSlower = 3, mostBuilt = 4;
// Comparing the whole program with them may take so many seconds, though the budget is spent.
static constexpr double leastComparing = 2;
// A compiler beside the search for so many processors.
static constexpr unsigned jobsPerBuilder = 4;

FoundLoops optiml::findLoops(const SearchTask &task, const Program &device, const Program &host) {
  FoundLoops found = findLoopRewrites(device, host, task.flags.fp.isStrict());
  if (!task.flags.kernel.empty()) {
    std::regex filter(task.flags.kernel, std::regex::extended); // checked when the flag was read
    std::erase_if(found.rewrites, [&](const LoopRewrite &r) { return !std::regex_search(r.kernel.original, filter); });
  }
  return found;
}

/// The loops with the choice of this number for each; false where there are fewer.
static bool choose(std::vector<LoopRewrite> &rewrites, size_t number) {
  bool more = number == 0;
  for (LoopRewrite &rewrite : rewrites) {
    if (rewrite.idiom.kind != LaunchIdiom::Kind::TimeStep)
      continue;
    std::vector<TimeTile> tiles = timeTiles(*rewrite.idiom.step);
    more |= number < tiles.size();
    rewrite.idiom.tile = tiles[std::min(number, tiles.size() - 1)];
  }
  return more;
}

LoopTrials::LoopTrials(const SearchTask &task, Backend &backend, FoundLoops found)
    : task(task), backend(backend), found(std::move(found)), building(task.remaining(), task.cancel()),
      comparing(task.remaining(), task.cancel()) {}

LoopTrials::~LoopTrials() {
  building.raise();
  stopBuilding();
  stopComparing(choices.size());
}

void LoopTrials::buildBeside(const Write &write, unsigned jobs) {
  for (size_t number = 0; number < mostBuilt && choose(found.rewrites, number); ++number) {
    auto emitted = write(found.rewrites);
    if (!emitted)
      llvm::consumeError(emitted.takeError()); // it is written again, with a message
    else
      choices.push_back({found.rewrites, std::move(*emitted), "", {}, "", ""});
  }
  for (size_t i = 0; i < std::min<size_t>(choices.size(), std::max(1u, jobs / jobsPerBuilder)); ++i)
    builders.push_back(std::async(std::launch::async, [this] { buildAll(); }));
  comparer = std::async(std::launch::async, [this] { compareAll(); });
}

void LoopTrials::buildAll() {
  for (std::unique_lock lock(mutex); !ending && next < choices.size() && !building.passed(); ++built) {
    const size_t number = next++;
    Choice &choice = choices[number];
    lock.unlock();
    auto executable =
        backend.buildProgram(task, choice.emitted.text, "program-loops-" + std::to_string(number), building.flag());
    lock.lock();
    if (executable)
      choice.executable = *executable;
    else
      failure = llvm::toString(executable.takeError());
    changed.notify_all();
  }
}

double LoopTrials::remaining() const {
  const double left = std::chrono::duration<double>(endBy - std::chrono::steady_clock::now()).count();
  constexpr double mostSeconds = 1e6; // as a time to wait
  return std::clamp(left, 1e-3, std::min(task.remaining(), mostSeconds));
}

void LoopTrials::compare(Choice &choice, const Deadline &within) {
  SearchTask limited = task;
  limited.deadline = &within;
  auto answer = compareWholeProgram(limited, backend, choice.emitted.text, &choice.cannotTell);
  if (answer)
    choice.verified = *answer;
  else
    choice.refused = llvm::toString(answer.takeError());
}

/// Of floating-point numbers that may differ by rounding; 0: there are none. Nothing: sums change their order, so that
/// a fault could hide.
static std::optional<unsigned> roundedBytes(const LaunchIdiom &idiom) {
  if (idiom.kind == LaunchIdiom::Kind::ClosureStep) // no term is less than nothing
    return idiom.isFloat ? idiom.bytes : 0;
  if (idiom.kind != LaunchIdiom::Kind::TimeStep) // those of time steps differ by contractions of the compiler's alone
    return idiom.isFloat ? std::nullopt : std::optional<unsigned>(0);
  unsigned bytes = 0;
  for (const TimeStep::Field &field : idiom.step->fields)
    if (field.element == "float" || field.element == "double")
      bytes = std::max(bytes, field.bytes);
  return bytes;
}

/// A program whose launches take the emulator too long: what its host sees is compared on the GPU. The kernels of these
/// algorithms are OptiML's own, whose tests look for races and faults.
void LoopTrials::compareOnGpu(Choice &choice) {
  std::set<unsigned> bytes = {0};
  for (const LoopRewrite &rewrite : choice.rewrites) {
    auto rounded = roundedBytes(rewrite.idiom);
    if (!rounded)
      return;
    bytes.insert(*rounded);
  }
  if (bytes.size() > 2)
    return;
  const unsigned floatBytes = *bytes.rbegin();
  if (choice.executable.empty()) {
    auto built = backend.buildProgram(task, choice.emitted.text, "program-compared", task.cancel());
    if (!built)
      return llvm::consumeError(built.takeError());
    choice.executable = std::move(*built);
  }
  if (choice.executable.empty())
    return;
  auto answer = backend.compareCopies(task, choice.executable, floatBytes);
  if (answer)
    choice.verified = *answer;
  else
    choice.refused += "; on the GPU, " + llvm::toString(answer.takeError());
}

/// One after the other, once the compilers have done their work.
void LoopTrials::compareAll() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ending || built == choices.size(); });
  for (; !ending && compared < choices.size() && !comparing.passed(); ++compared) {
    if (choices[compared].executable.empty())
      continue;
    Choice choice = choices[compared];
    lock.unlock();
    compare(choice, comparing);
    lock.lock();
    if (comparing.passed())
      return;
    choices[compared].verified = choice.verified;
    choices[compared].refused = choice.refused;
    choices[compared].cannotTell = choice.cannotTell;
  }
}

void LoopTrials::stopBuilding() {
  {
    std::lock_guard lock(mutex);
    ending = true;
    if (llvm::any_of(choices, [](const Choice &choice) { return !choice.executable.empty(); }))
      building.raise(); // else the first that is under way is waited for
  }
  changed.notify_all();
  for (std::future<void> &builder : builders)
    builder.wait();
  builders.clear();
}

/// Where the choice of that number is being compared, this waits for it, until its time is over.
void LoopTrials::stopComparing(size_t but) {
  if (!comparer.valid())
    return;
  {
    std::lock_guard lock(mutex);
    if (compared != but)
      comparing.raise();
  }
  if (comparer.wait_for(std::chrono::duration<double>(remaining())) != std::future_status::ready)
    comparing.raise();
  comparer.get();
}

/// Of those that were built beside the search.
llvm::Expected<LoopTrials::Choice> LoopTrials::fastestBuilt() {
  size_t best = choices.size();
  std::string why = failure.empty() ? "no time was left to try others" : failure;
  for (size_t number = 0; number < choices.size(); ++number) {
    Choice &choice = choices[number];
    if (choice.executable.empty())
      continue;
    auto times = backend.timeProgram(task, choice.emitted.text, choice.executable);
    if (!times) {
      why = llvm::toString(times.takeError()); // the time is over, or this tile is too large
      continue;
    }
    choice.times = *times;
    if (best == choices.size() || choice.gain() > choices[best].gain())
      best = number;
  }
  stopComparing(best);
  if (best == choices.size())
    return makeError("{0}", why);
  return std::move(choices[best]);
}

/// Of those with the variant. Once one has the gain that is wanted, others get a share of the time.
llvm::Expected<LoopTrials::Choice> LoopTrials::fastestWritten(const Write &write, double wanted) {
  Choice best;
  const double begin = task.deadline->remaining();
  for (size_t number = 0; choose(found.rewrites, number); ++number) {
    const bool isSlow = best.gain() < wanted;
    if (number && (isSlow ? number >= mostSlower : begin - task.deadline->remaining() > tilesShare * begin))
      break;
    auto emitted = write(found.rewrites);
    if (!emitted)
      return emitted.takeError();
    auto times = backend.timeProgram(task, emitted->text, /*executable=*/"");
    if (!times && number == 0)
      return times.takeError();
    if (!times) {
      llvm::consumeError(times.takeError()); // the time is over, or this tile is too large
      continue;
    }
    Choice choice{found.rewrites, std::move(*emitted), "", *times, "", ""};
    if (choice.gain() > best.gain())
      best = std::move(choice);
  }
  return best;
}

/// Gives the choice the variant, where some kernel of it is still launched and the program becomes faster.
llvm::Error LoopTrials::addVariant(const Write &write, const Variant &variant, Choice &choice, bool &added) {
  if (llvm::all_of(variant.rewrites, [&](const KernelRewrite &rewrite) {
        return llvm::any_of(choice.rewrites,
                            [&](const LoopRewrite &loop) { return loop.kernel.original == rewrite.original; });
      }))
    return llvm::Error::success();
  auto emitted = write(choice.rewrites);
  if (!emitted)
    return emitted.takeError();
  Choice both{choice.rewrites, std::move(*emitted), "", {}, "", ""};
  Deadline wanted(remaining(), task.cancel());
  auto compared = std::async(std::launch::async, [&] { compare(both, wanted); }); // it takes the emulator alone
  auto times = [&]() -> llvm::Expected<ProgramTimes> {
    auto built = backend.buildProgram(task, both.emitted.text, "program-both", task.cancel());
    if (!built)
      return built.takeError();
    auto timed = backend.timeProgram(task, both.emitted.text, *built);
    both.executable = std::move(*built);
    return timed;
  }();
  if (times)
    both.times = *times;
  const bool pays = times && both.gain() >= leastProgramGain(task, backend) * choice.gain();
  if (!pays)
    wanted.raise();
  compared.wait();
  if (!pays)
    return times ? llvm::Error::success() : times.takeError();
  choice = std::move(both);
  added = true;
  return llvm::Error::success();
}

LoopOutcome LoopTrials::finish(const Write &write, const Variant *variant, double speedup) {
  LoopOutcome outcome;
  outcome.notes = std::move(found.notes);
  if (!any())
    return outcome;
  auto keep = [&](llvm::Error why) {
    outcome.notes.push_back("the loops of launches stay: " + llvm::toString(std::move(why)));
    return outcome;
  };
  const bool wereBuilt = !builders.empty();
  laps = StopWatch();
  using Clock = std::chrono::steady_clock;
  if (task.flags.budget.seconds > 0 && backend.measures()) // what the search has found is still to be compared
    endBy = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(std::max(leastComparing, task.leftOf(1))));
  stopBuilding();
  laps.lap("build");
  if (task.deadline->passed())
    return keep(makeError("no time was left to try others"));
  const double wanted = leastProgramGain(task, backend) * speedup;
  auto choice = wereBuilt ? fastestBuilt() : fastestWritten(write, wanted);
  if (!choice)
    return keep(choice.takeError());
  laps.lap("time");
  bool withVariant = variant && !wereBuilt;
  if (variant && wereBuilt)
    if (llvm::Error e = addVariant(write, *variant, *choice, withVariant))
      outcome.notes.push_back("the loops of launches are replaced without the kernels' variants: " +
                              llvm::toString(std::move(e)));
  laps.lap("variant");
  if (!(choice->gain() >= wanted))
    return keep(makeError("with them replaced the program's kernels are {0:f2} times as fast, without {1:f2} times",
                          choice->gain(), speedup));
  if (choice->verified.empty() && choice->refused.empty())
    compare(*choice, Deadline(remaining(), task.cancel()));
  if (choice->verified.empty() && choice->cannotTell)
    compareOnGpu(*choice);
  laps.lap("compare");
  if (choice->verified.empty())
    return keep(makeError("{0}", choice->refused));
  outcome.rewrites = std::move(choice->rewrites);
  outcome.emitted = std::move(choice->emitted);
  outcome.executable = std::move(choice->executable);
  outcome.withVariant = withVariant;
  outcome.timed = {choice->times, std::move(choice->verified)};
  return outcome;
}
