//===- ProgramTrial.cpp - a whole program against the original ------------===//
#include "ProgramTrial.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <future>

using namespace optiml;

// What is gained must be worth new code: of the measured time, and of a whole program's run on the emulator.
static constexpr double leastGain = 1.02;
static constexpr double compareSeconds = 60;
// A comparison takes some six runs: where the first takes more of the time that is left, the others are not worth
// starting.
static constexpr double firstShare = 0.2;
// Of the time for a program, where what the emulator does not end within that may be compared on the GPU.
static constexpr double emulatorShare = 0.5;

llvm::Expected<std::string> optiml::compareWholeProgram(const SearchTask &task, const Backend &backend,
                                                        const std::string &text, bool *cannotTell) {
  CompareOptions compare;
  compare.everyPath = false; // its sizes are the program's own
  compare.verify = verifyOptions(task);
  compare.seconds = std::min(compareSeconds, task.flags.time);
  compare.firstSeconds = firstShare * task.deadline->remaining();
  compare.freshKernels = false;
  compare.arguments = task.flags.programArgs;
  if (std::vector<std::string> sizes = backend.otherSizes(); !sizes.empty()) {
    llvm::SmallVector<llvm::StringRef, 4> words;
    llvm::SplitString(sizes.front(), words);
    compare.arguments.clear();
    for (llvm::StringRef word : words)
      compare.arguments.push_back(word.str());
  }
  auto report =
      comparePrograms(*task.originals, task.toolchain, task.options.inputs.front(), text, task.options, compare);
  if (cannotTell)
    *cannotTell = !report;
  if (!report)
    return report.takeError();
  if (report->verdict != Verdict::Correct)
    return makeError("the program is not the same on the emulator: {0}", report->why);
  return llvm::formatv("the whole program compared with the original on {0} inputs in {1} runs on the CPU emulator",
                       report->launches, report->runs)
      .str();
}

double optiml::leastProgramGain(const SearchTask &task, const Backend &backend) {
  return backend.measures() ? leastGain : task.flags.margin;
}

llvm::Expected<TimedProgram> optiml::timeAndCompare(const SearchTask &task, Backend &backend, const std::string &text,
                                                    const std::string &executable, std::optional<unsigned> floatBytes,
                                                    double leastGain) {
  const bool onGpu = !executable.empty();
  Deadline wanted(onGpu ? emulatorShare * task.remaining() : task.remaining(), task.cancel());
  SearchTask comparison = task;
  comparison.deadline = &wanted;
  bool cannotTell = false;
  // A run on a GPU takes half a second, and building the program for the emulator several: more often than not the runs
  // tell enough.
  auto compared = std::async(backend.measures() ? std::launch::deferred : std::launch::async,
                             [&] { return compareWholeProgram(comparison, backend, text, &cannotTell); });
  auto times = backend.watchProgram(task, text, executable);
  if (!times || times->before < leastGain * times->after) {
    if (!backend.measures()) { // it is under way
      wanted.raise();
      llvm::consumeError(compared.get().takeError());
    }
    if (!times)
      return times.takeError();
    return makeError("the program's kernels are {0:f2} times as fast", times->before / times->after);
  }
  std::string otherCopies; // why they do not tell that it is the same
  if (onGpu) {
    auto copies = backend.compareCopies(task, executable, floatBytes);
    if (copies)
      return TimedProgram{*times, std::move(*copies)};
    otherCopies = llvm::toString(copies.takeError()); // the emulator may tell more
  }
  auto verified = compared.get();
  if (verified)
    return TimedProgram{*times, std::move(*verified)};
  if (!cannotTell || otherCopies.empty())
    return verified.takeError();
  llvm::consumeError(verified.takeError());
  return makeError("{0}", otherCopies);
}
