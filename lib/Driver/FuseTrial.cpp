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

FuseTrial optiml::tryFusions(const SearchTask &task, Backend &backend, const Program &device) {
  FuseTrial trial;
  if (device.launches().size() < 2)
    return trial;
  auto keep = [&](llvm::Error why) {
    trial.text.clear();
    trial.notes.push_back("launches that follow one another stay apart: " + llvm::toString(std::move(why)));
    return std::move(trial);
  };
  auto host = Program::parse(device.path(), task.text, task.options, task.toolchain, View::Host);
  if (!host)
    return keep(host.takeError());
  std::optional<std::regex> filter;
  if (!task.flags.kernel.empty())
    filter.emplace(task.flags.kernel, std::regex::extended); // checked when the flag was read
  FoundFusions found = findFusions(device, **host, task.flags.fp == FpMode::Strict,
                                   [&](const std::string &kernel) { return !filter || std::regex_search(kernel, *filter); });
  trial.notes = found.notes;
  std::erase_if(found.fusions, [&](const Fusion &fusion) {
    std::string lost = lostTransform(fusion);
    if (!lost.empty())
      trial.notes.push_back(partNames(fusion) + " stay apart, for one kernel would have to do without " + lost);
    return !lost.empty();
  });
  if (found.fusions.empty())
    return trial;
  auto emitted = emitFusions(**host, task.options.inputs.front(), found.fusions);
  if (!emitted)
    return keep(emitted.takeError());
  auto times = backend.timeProgram(task, emitted->text);
  if (!times)
    return keep(times.takeError());
  trial.times = *times;
  double gain = times->after > 0 ? times->before / times->after : 0, margin = leastProgramGain(task, backend);
  if (!(gain >= margin))
    return keep(makeError("with them fused the program's kernels are {0:f2} times as fast", gain));
  auto verified = compareWholeProgram(task, backend, emitted->text);
  if (!verified)
    return keep(verified.takeError());
  auto parsed = Program::parse(device.path(), emitted->text, task.options, task.toolchain, View::Device);
  if (!parsed)
    return keep(parsed.takeError());
  trial.verified = *verified;
  trial.device = std::move(*parsed);
  trial.text = emitted->text;
  for (const Fusion &fusion : found.fusions)
    trial.kernels.push_back(partNames(fusion));
  return trial;
}
