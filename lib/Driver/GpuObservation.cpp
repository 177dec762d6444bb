//===- GpuObservation.cpp - runs of whole programs on a GPU ---------------===//
#include "GpuBackend.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include <regex>

using namespace optiml;

// A kernel with less than this share of the GPU's time is not worth a search.
static constexpr double leastShare = 0.01;
// Odd sizes run on the emulator only if that is a matter of seconds.
static constexpr double otherSizeSeconds = 5;
// A program whose original was not run to its end runs so long at least, or until so much of the budget has passed.
static constexpr double leastCheckSeconds = 1, mostOfBudget = 1.1;

std::vector<std::string> GpuBackend::worthSearching(const SearchTask &task) const {
  std::vector<std::string> symbols;
  bool asked = !task.flags.kernel.empty();
  std::regex filter(asked ? task.flags.kernel : ".*", std::regex::extended); // checked when the flag was read
  for (const KernelTime &k : searched.times.kernels)
    if (asked ? std::regex_search(k.name, filter) : k.seconds >= leastShare * searched.times.kernelSeconds)
      symbols.push_back(k.symbol);
  return symbols;
}

std::optional<KernelUse> GpuBackend::timeOf(const std::string &symbol) const {
  if (!(searched.times.kernelSeconds > 0))
    return std::nullopt;
  double seconds = 0;
  for (const KernelTime &k : searched.times.kernels)
    if (sameFunction(k.symbol, symbol))
      seconds += k.seconds;
  return KernelUse{seconds, seconds / searched.times.kernelSeconds};
}

std::future<llvm::Expected<GpuBackend::Compiled>> GpuBackend::compiling(const SearchTask &task,
                                                                        const std::string &text) {
  // The task may be gone when it ends.
  auto compile = [&toolchain = task.toolchain, &options = task.options, path = task.path, source = text,
                  cancel = task.cancel()]() -> llvm::Expected<Compiled> {
    auto compiler = TextCompiler::create(toolchain, path, options, cancel);
    if (!compiler)
      return compiler.takeError();
    Verdict verdict;
    auto text = (*compiler)->compile(source, verdict);
    if (!text)
      return text.takeError();
    return Compiled{std::move(*compiler), std::move(*text)};
  };
  return std::async(std::launch::async, compile);
}

void GpuBackend::compileAhead(const SearchTask &task, const std::string &text) {
  std::lock_guard lock(mutex);
  ahead.try_emplace(text, compiling(task, text));
}

void GpuBackend::compileOriginal(const SearchTask &task) {
  {
    std::lock_guard lock(mutex);
    if (auto begun = ahead.find(task.text); begun != ahead.end()) {
      compiled = std::move(begun->second);
      ahead.erase(begun);
      return;
    }
  }
  compiled = compiling(task, task.text);
}

llvm::Expected<GpuBackend::Watched> GpuBackend::watch(const SearchTask &task, const std::string &executable,
                                                      const std::string &folder,
                                                      std::unique_ptr<ObservedProgram> &stopped) const {
  Watched seen;
  // Where launches may be fused, programs are compared by what they copy.
  if (task.device->launches().size() > 1)
    seen.copies = executable + ".copies";
  if (llvm::Error e =
          captureGpuProgram(task, executable, task.flags.kernel, folder, seen.launches, stopped, seen.copies)
              .moveInto(seen.run))
    return std::move(e);
  return std::move(seen);
}

CopyingProgram GpuBackend::copiesOf(const std::string &executable) const {
  auto seen = watched.find(executable);
  return seen == watched.end() ? CopyingProgram{executable, "", 0}
                               : CopyingProgram{executable, seen->second.copies, seen->second.run.exitCode};
}

llvm::Error GpuBackend::readRecorded(const SearchTask &task) {
  if (llvm::Error e =
          recordedRuns(task.flags.workloads, task.flags.threads, *task.device, task.folder).moveInto(emulated))
    return e;
  if (const std::string file = task.flags.workloads.front() + "/times.json"; llvm::sys::fs::exists(file))
    if (llvm::Error e = KernelTimes::read(file).moveInto(searched.times))
      return e;
  compileOriginal(task);
  captured = std::exchange(emulated.performance, {});
  return llvm::Error::success();
}

llvm::Error GpuBackend::observe(const SearchTask &task) {
  own.reset(); // of another text, and of another deadline
  if (!task.replaced)
    paused.reset();
  if (task.isRecorded())
    return readRecorded(task);
  compileOriginal(task);
  // The emulator's runs take no GPU: beside those on it.
  auto small = std::async(std::launch::async, [&]() -> llvm::Expected<CapturedRuns> {
    if (!task.readsArguments)
      return CapturedRuns();
    return captureOtherSizes(task.options, task.toolchain, task.changed(), task.flags.programArgs, task.folder,
                             otherSizeSeconds, std::min(otherSizesSeconds, task.share(preparingShare)), task.cancel());
  });
  auto observed = [&]() -> llvm::Error {
    const bool isEarly = task.isFromFile() && early && early->executable.valid();
    auto built = !task.executable.empty() ? llvm::Expected<std::string>(task.executable)
                 : isEarly ? early->executable.get()
                           : buildGpuProgram(task, task.isFromFile() ? nullptr : &task.text, "program-gpu");
    if (!built)
      return built.takeError();
    // Times, launches and copies in one run, as the program may take long. Which kernels matter shows only then.
    std::unique_ptr<ObservedProgram> stopped;
    Watched &seen = watched[*built];
    if (seen.launches.launches.empty()) // not yet, or another search has taken them
      if (llvm::Error e = watch(task, *built, task.folder + "/gpu", stopped).moveInto(seen))
        return e;
    searched = seen.run;
    captured = std::exchange(seen.launches, {});
    if (!task.replaced) {
      original = *built;
      run = searched;
      elements.add(captured.launches);
      paused = std::move(stopped);
    }
    if (searched.times.kernels.empty())
      return makeError("the program launches no kernel on the GPU (it ended with exit code {0})", searched.exitCode);
    std::vector<std::string> symbols = worthSearching(task);
    if (symbols.empty())
      return makeError("none of the program's {0} kernels has a match of --optiml-kernel={1}",
                       searched.times.kernels.size(), task.flags.kernel);
    if (llvm::any_of(symbols, [&](const std::string &symbol) { return !isCaptured(symbol); }))
      // Perhaps others have taken the room.
      if (auto again =
              captureGpuProgram(task, *built, expressionFor(symbols), task.folder + "/gpu-again", captured, stopped);
          !again)
        return again.takeError();
    llvm::erase_if(captured.launches,
                   [&](const LaunchImage &launch) { return !llvm::is_contained(symbols, launch.kernel); });
    dropRepeats(captured);
    weighAll(captured, searched.times.kernels);
    for (const std::string &text : captured.leftOut)
      remarks.push_back("not captured: " + text);
    if (captured.launches.empty())
      return makeError("no launch of the program could be captured{0}",
                       captured.leftOut.empty() ? "" : ": " + captured.leftOut.front());
    return nameElements(captured, *task.device);
  }();
  auto runs = small.get();
  if (runs && !observed)
    dropOwnSize(captured, *runs);
  if (runs)
    for (Workload &other : runs->otherSizes)
      if (llvm::Error e = nameElements(other, *task.device))
        observed = llvm::joinErrors(std::move(observed), std::move(e));
  if (runs)
    emulated = std::move(*runs);
  else
    remarks.push_back("no odd sizes are checked on the emulator: " + llvm::toString(runs.takeError()));
  if (observed) // it works with the task
    if (auto text = compiled.get(); !text)
      llvm::consumeError(text.takeError());
  return observed;
}

llvm::Expected<ProgramTimes> GpuBackend::timeProgram(const SearchTask &task, const std::string &emitted,
                                                     const std::string &executable) {
  if (paused)
    return makeError("the program takes too long to be timed as a whole");
  auto built = executable.empty() ? buildGpuProgram(task, &emitted, "program-launches")
                                  : llvm::Expected<std::string>(executable);
  if (!built)
    return built.takeError();
  return timeBesides(task, {original, run, 0}, *built);
}

llvm::Expected<ProgramTimes> GpuBackend::watchProgram(const SearchTask &task, const std::string &emitted,
                                                      const std::string &executable) {
  if (paused || executable.empty())
    return timeProgram(task, emitted, executable);
  SearchTask whole = task;
  whole.mayPause = false;
  std::unique_ptr<ObservedProgram> stopped;
  Watched &kept = watched[executable];
  if (llvm::Error e = watch(whole, executable, executable + "-gpu", stopped).moveInto(kept))
    return std::move(e);
  auto times = timeBesides(task, {original, run, 0}, executable, &kept.run);
  if (times)
    originalSeconds = times->before;
  return times;
}

llvm::Error GpuBackend::checkProgram(const SearchTask &task, const std::string &emitted, const std::string &executable,
                                     nlohmann::json &summary) {
  if (task.isRecorded())
    return llvm::Error::success();
  auto built = executable.empty() ? buildGpuProgram(task, &emitted, "program-optimized")
                                  : llvm::Expected<std::string>(executable);
  if (!built)
    return built.takeError();
  if (paused)
    return comparePausedProgram(task, *paused, *built, std::max(leastCheckSeconds, task.leftOf(mostOfBudget)), summary);
  const double seconds = task.replaced ? originalSeconds : own->baseline().time.seconds;
  return compareGpuPrograms(task, {original, run, seconds}, *built, summary);
}
