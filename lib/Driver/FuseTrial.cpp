//===- FuseTrial.cpp - fusing launches, tried out -------------------------===//
#include "FuseTrial.h"
#include "ProgramTrial.h"
#include "optiml/Driver/Emit.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/KernelSpace.h"
#include "llvm/ADT/STLExtras.h"
#include <regex>

using namespace optiml;

/// Transforms that spread a kernel's work over threads or keep what it reads on the chip, alternatives side by side: what
/// one of them gains is more than what fusing does.
static const std::vector<std::vector<llvm::StringRef>> essential = {
    {"distribute-loop", "split-reduction"}, {"privatize-atomic"}, {"transpose-through-shared"}, {"stage-window", "stage-shared"}};

static bool hasSite(const KernelState &state, llvm::ArrayRef<llvm::StringRef> transforms) {
  return llvm::any_of(transforms, [&](llvm::StringRef name) { return !findTransform(name)->sites(state).empty(); });
}

/// A transform that a part could have and the fused kernel cannot; empty: none.
static std::string lostTransform(const Fusion &fusion) {
  for (const std::vector<llvm::StringRef> &transforms : essential)
    for (const KernelState &part : fusion.parts)
      if (hasSite(part, transforms) && !hasSite(fusion.kernel.state, transforms))
        return (transforms.front() + " of " + part.rewrite.original).str();
  return "";
}

static std::string partNames(const Fusion &fusion) {
  std::string result;
  for (const KernelState &part : fusion.parts)
    result += (result.empty() ? "" : "+") + part.rewrite.original;
  return result;
}

// Fused kernels that are no slower as they are may still be rewritten better than their parts.
static constexpr double notSlower = 0.99;
// Each costs a compilation and some runs of the program.
static constexpr size_t mostTrials = 6;

namespace {

class Trial {
public:
  Trial(const SearchTask &task, Backend &backend, const Program &device) : task(task), backend(backend), device(device) {}
  llvm::Expected<FuseTrial> run();
  llvm::Expected<FuseTrial> runOverRows(const FuseTrial &plain);
  std::vector<std::string> notes;

private:
  const SearchTask &task;
  Backend &backend;
  const Program &device;
  std::unique_ptr<Program> host;

  llvm::Error openHost();
  std::vector<Fusion> candidates(bool overRows);
  llvm::Expected<FuseTrial> compared(FuseTrial trial);
  llvm::Expected<FuseTrial> timed(const std::vector<Fusion> &fusions);
  std::vector<Fusion> thoseThatPay(std::vector<Fusion> fusions);
};

} // namespace

/// What can be fused and leaves the search what it needs.
std::vector<Fusion> Trial::candidates(bool overRows) {
  std::optional<std::regex> filter;
  if (!task.flags.kernel.empty())
    filter.emplace(task.flags.kernel, std::regex::extended); // checked when the flag was read
  FoundFusions found = findFusions(device, *host, task.flags.fp.isStrict(),
                                   [&](const std::string &kernel) { return !filter || std::regex_search(kernel, *filter); }, overRows);
  notes = found.notes;
  std::erase_if(found.fusions, [&](const Fusion &fusion) {
    std::string lost = lostTransform(fusion);
    if (!lost.empty())
      notes.push_back(partNames(fusion) + " stay apart, for one kernel would have to do without " + lost);
    return !lost.empty();
  });
  return std::move(found.fusions);
}

/// The program with these fused, and its time.
llvm::Expected<FuseTrial> Trial::timed(const std::vector<Fusion> &fusions) {
  auto emitted = emitFusions(*host, task.options.inputs.front(), fusions);
  if (!emitted)
    return emitted.takeError();
  auto times = backend.timeProgram(task, emitted->text);
  if (!times)
    return times.takeError();
  FuseTrial trial;
  trial.text = emitted->text;
  trial.times = *times;
  for (const Fusion &fusion : fusions) {
    trial.kernels.push_back(partNames(fusion));
    trial.names.push_back(fusion.kernel.state.rewrite.original);
    trial.launches.insert(fusion.launches.begin(), fusion.launches.end());
  }
  return trial;
}

/// Those that do no harm by themselves.
std::vector<Fusion> Trial::thoseThatPay(std::vector<Fusion> fusions) {
  std::erase_if(fusions, [&](const Fusion &fusion) {
    auto alone = timed({fusion});
    std::string why = !alone ? llvm::toString(alone.takeError())
                      : alone->gain() < notSlower ? llvm::formatv("the program's kernels are {0:f2} times as fast", alone->gain()).str()
                                                  : "";
    if (!why.empty())
      notes.push_back(partNames(fusion) + " stay apart: " + why);
    return !why.empty();
  });
  return fusions;
}

llvm::Error Trial::openHost() {
  auto parsed = Program::parse(device.path(), task.text, task.options, task.toolchain, View::Host);
  if (!parsed)
    return parsed.takeError();
  host = std::move(*parsed);
  return llvm::Error::success();
}

/// The trial, when its program does what the original does.
llvm::Expected<FuseTrial> Trial::compared(FuseTrial trial) {
  auto verified = compareWholeProgram(task, backend, trial.text);
  if (!verified)
    return verified.takeError();
  trial.verified = *verified;
  auto fused = Program::parse(device.path(), trial.text, task.options, task.toolchain, View::Device);
  if (!fused)
    return fused.takeError();
  trial.device = std::move(*fused);
  return std::move(trial);
}

llvm::Expected<FuseTrial> Trial::run() {
  if (llvm::Error e = openHost())
    return std::move(e);
  std::vector<Fusion> fusions = candidates(/*overRows=*/false);
  if (fusions.empty())
    return FuseTrial();
  auto trial = timed(fusions);
  if ((!trial || trial->gain() < notSlower) && fusions.size() > 1 && fusions.size() <= mostTrials) {
    if (!trial)
      llvm::consumeError(trial.takeError());
    fusions = thoseThatPay(std::move(fusions));
    if (fusions.empty())
      return FuseTrial();
    trial = timed(fusions);
  }
  if (!trial)
    return trial.takeError();
  if (trial->gain() < notSlower)
    return makeError("with them fused the program's kernels are {0:f2} times as fast", trial->gain());
  return compared(std::move(*trial));
}

llvm::Expected<FuseTrial> Trial::runOverRows(const FuseTrial &plain) {
  if (llvm::Error e = openHost())
    return std::move(e);
  std::vector<Fusion> fusions = candidates(/*overRows=*/true);
  bool any = false;
  std::erase_if(fusions, [&](const Fusion &fusion) {
    any |= !fusion.kernel.launches.empty();
    return fusion.kernel.launches.empty() && !plain.launches.count(fusion.launches.front());
  });
  if (!any)
    return FuseTrial();
  auto trial = timed(fusions);
  return trial ? compared(std::move(*trial)) : std::move(trial);
}

static FuseTrial answerOf(llvm::Expected<FuseTrial> result, Trial &trial) {
  FuseTrial answer;
  if (result)
    answer = std::move(*result);
  else
    trial.notes.push_back("launches that follow one another stay apart: " + llvm::toString(result.takeError()));
  answer.notes = std::move(trial.notes);
  return answer;
}

FuseTrial optiml::tryFusions(const SearchTask &task, Backend &backend, const Program &device) {
  if (device.launches().size() < 2)
    return FuseTrial();
  Trial trial(task, backend, device);
  return answerOf(trial.run(), trial);
}

FuseTrial optiml::tryRowFusions(const SearchTask &task, Backend &backend, const Program &device, const FuseTrial &plain) {
  if (device.launches().size() < 2)
    return FuseTrial();
  Trial trial(task, backend, device);
  return answerOf(trial.runOverRows(plain), trial);
}
