//===- LoopTrial.cpp - replacing loops of launches, tried out -------------===//
#include "LoopTrial.h"
#include "ProgramTrial.h"
#include "optiml/Support/Error.h"
#include <regex>

using namespace optiml;

FoundLoops optiml::findLoops(const SearchTask &task, const Program &device, const Program &host) {
  FoundLoops found = findLoopRewrites(device, host, task.flags.fp.isStrict());
  if (!task.flags.kernel.empty()) {
    std::regex filter(task.flags.kernel, std::regex::extended); // checked when the flag was read
    std::erase_if(found.rewrites, [&](const LoopRewrite &r) { return !std::regex_search(r.kernel.original, filter); });
  }
  return found;
}

LoopTrial optiml::tryLoops(const SearchTask &task, Backend &backend, const Program *host, FoundLoops found,
                           const Variant &variant, double speedup) {
  LoopTrial trial;
  trial.notes = std::move(found.notes);
  if (found.rewrites.empty())
    return trial;
  auto keep = [&](llvm::Error why) {
    trial.notes.push_back("the loops of launches stay: " + llvm::toString(std::move(why)));
    return trial;
  };
  auto emitted = emitProgram(variant, *host, task.path, {}, found.rewrites);
  if (!emitted)
    return keep(emitted.takeError());
  auto times = backend.timeProgram(task, emitted->text);
  if (!times)
    return keep(times.takeError());
  double gain = times->after > 0 ? times->before / times->after : 0, margin = leastProgramGain(task, backend);
  if (!(gain >= margin * speedup))
    return keep(makeError("with them replaced the program's kernels are {0:f2} times as fast, without {1:f2} times", gain, speedup));
  auto verified = compareWholeProgram(task, backend, emitted->text);
  if (!verified)
    return keep(verified.takeError());
  trial.times = *times;
  trial.verified = *verified;
  trial.rewrites = std::move(found.rewrites);
  return trial;
}
