//===- LoopTrial.cpp - replacing loops of launches, tried out -------------===//
#include "ProgramTrial.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/TimeSteps.h"
#include <regex>

using namespace optiml;

// Of the time that is left, for trying other tiles once there is one that is faster.
static constexpr double tilesShare = 0.3;
// Where none has been faster yet, so many are tried.
static constexpr unsigned mostSlower = 3;

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

LoopTrial optiml::tryLoops(const SearchTask &task, Backend &backend, const Program *host, FoundLoops found,
                           const Variant &variant, double speedup) {
  LoopTrial trial;
  trial.notes = std::move(found.notes);
  if (found.rewrites.empty())
    return trial;
  auto keep = [&](llvm::Error why) {
    trial.notes.push_back("the loops of launches stay: " + llvm::toString(std::move(why)));
    trial.rewrites.clear();
    return trial;
  };
  if (task.deadline->passed())
    return keep(makeError("no time was left to try others"));
  std::string text;
  double gain = 0, begin = task.deadline->remaining(), margin = leastProgramGain(task, backend);
  for (size_t number = 0; choose(found.rewrites, number); ++number) {
    bool slow = gain < margin * speedup;
    if (number && (slow ? number >= mostSlower : begin - task.deadline->remaining() > tilesShare * begin))
      break;
    auto emitted = emitProgram(variant, *host, task.path, {}, found.rewrites);
    if (!emitted)
      return keep(emitted.takeError());
    auto times = backend.timeProgram(task, emitted->text);
    if (!times) {
      if (number == 0)
        return keep(times.takeError());
      llvm::consumeError(times.takeError()); // the time is over, or this tile is too large
      continue;
    }
    double own = times->after > 0 ? times->before / times->after : 0;
    if (!(own > gain))
      continue;
    gain = own;
    text = emitted->text;
    trial.times = *times;
    trial.rewrites = found.rewrites;
  }
  if (!(gain >= margin * speedup))
    return keep(makeError("with them replaced the program's kernels are {0:f2} times as fast, without {1:f2} times",
                          gain, speedup));
  auto verified = compareWholeProgram(task, backend, text);
  if (!verified)
    return keep(verified.takeError());
  trial.verified = *verified;
  return trial;
}
