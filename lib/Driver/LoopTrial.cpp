//===- LoopTrial.cpp - replacing loops of launches, tried out -------------===//
#include "LoopTrial.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <regex>

using namespace optiml;

// What is gained must be worth new code: of the measured time, and of a whole program's run on the emulator.
static constexpr double leastGain = 1.02;
static constexpr double compareSeconds = 60;

/// Compares the program with the original, on the emulator. What was compared, or an error.
static llvm::Expected<std::string> compareOnEmulator(const SearchTask &task, const Backend &backend, const std::string &text) {
  CompareOptions compare;
  compare.verify = verifyOptions(task);
  compare.seconds = std::min(compareSeconds, task.flags.time);
  compare.freshKernels = false;
  compare.arguments = task.flags.programArgs;
  if (std::vector<std::string> sizes = backend.otherSizes(); !sizes.empty()) {
    llvm::SmallVector<llvm::StringRef, 4> words;
    llvm::SplitString(sizes.front(), words);
    compare.arguments.clear();
    for (llvm::StringRef word : words)
      compare.arguments.push_back(word.str());
  }
  auto originals = OriginalBuilds::create();
  if (!originals)
    return originals.takeError();
  auto report = comparePrograms(*originals, task.toolchain, task.options.inputs.front(), text, task.options, compare);
  if (!report)
    return report.takeError();
  if (report->verdict != Verdict::Correct)
    return makeError("the program is not the same on the emulator: {0}", report->why);
  return llvm::formatv("the whole program compared with the original on {0} inputs in {1} runs on the CPU emulator",
                       report->launches, report->runs).str();
}

LoopTrial optiml::tryLoops(const SearchTask &task, Backend &backend, const Program &device, const Program &host,
                           const Variant &variant, double speedup) {
  LoopTrial trial;
  FoundLoops found = findLoopRewrites(device, host, task.flags.fp == FpMode::Strict);
  trial.notes = found.notes;
  if (!task.flags.kernel.empty()) {
    std::regex filter(task.flags.kernel, std::regex::extended); // checked when the flag was read
    std::erase_if(found.rewrites, [&](const LoopRewrite &r) { return !std::regex_search(r.kernel.original, filter); });
  }
  if (found.rewrites.empty())
    return trial;
  auto keep = [&](llvm::Error why) {
    trial.notes.push_back("the loops of launches stay: " + llvm::toString(std::move(why)));
    return trial;
  };
  auto emitted = emitProgram(variant, host, task.path, {}, found.rewrites);
  if (!emitted)
    return keep(emitted.takeError());
  auto times = backend.timeProgram(task, emitted->text);
  if (!times)
    return keep(times.takeError());
  double gain = times->after > 0 ? times->before / times->after : 0, margin = backend.measures() ? leastGain : task.flags.margin;
  if (!(gain >= margin * speedup))
    return keep(makeError("with them replaced the program's kernels are {0:f2} times as fast, without {1:f2} times", gain, speedup));
  auto verified = compareOnEmulator(task, backend, emitted->text);
  if (!verified)
    return keep(verified.takeError());
  trial.times = *times;
  trial.verified = *verified;
  trial.rewrites = std::move(found.rewrites);
  return trial;
}
