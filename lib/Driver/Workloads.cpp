//===- Workloads.cpp - what a search runs the kernels on ------------------===//
#include "Workloads.h"
#include "Backend.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <set>

using namespace optiml;

static constexpr long smallArgument = 64;
// A run with other sizes.
static constexpr double leastOtherSeconds = 5, mostOtherSeconds = 20;

std::vector<std::vector<std::string>> optiml::oddArguments(const std::vector<std::string> &arguments) {
  std::vector<std::vector<std::string>> result;
  // Odd, mutually prime, on both sides of a warp and of common tiles, and the second one of a table of 256 elements;
  // then multiples of 16, for variants that ask for rows of whole vectors; then of 128, for programs that only take
  // whole tiles, as their variants with larger ones do.
  static const std::vector<std::vector<long>> sets = {
      {61, 67, 71, 37}, {131, 269, 33, 29}, {48, 80, 112, 32}, {128, 256, 384, 128}};
  auto single = [](long size) {
    return size % 128 ? size * 15 + size % 2 * 2 : size * 3;
  }; // a length: more than one block
  unsigned sizes = 0;
  long largest = 0;
  for (const std::string &argument : arguments) {
    long value;
    if (llvm::StringRef(argument).getAsInteger(10, value))
      continue;
    sizes += value >= 8;
    largest = std::max(largest, value);
  }
  if (arguments.empty()) {
    for (unsigned count : {3u, 2u, 1u})
      for (const std::vector<long> &set : sets) {
        std::vector<std::string> line;
        for (unsigned i = 0; i < count; ++i)
          line.push_back(std::to_string(count == 1 ? single(set[i]) : set[i]));
        result.push_back(line);
      }
    return result;
  }
  for (const std::vector<long> &set : sets) {
    std::vector<std::string> line = arguments;
    unsigned n = 0;
    for (std::string &argument : line) {
      long value;
      if (llvm::StringRef(argument).getAsInteger(10, value) || value < 8)
        continue;
      // A variant may be written for a small one, the width of a filter, say: once it stays what it is.
      if (set[0] % 16 == 0 && value < smallArgument && largest >= smallArgument)
        continue;
      long odd = set[n++ % set.size()];
      if (sizes == 1)
        odd = single(odd);
      argument = std::to_string(std::min(odd, odd % 2 ? value | 1 : value));
    }
    if (n && std::find(result.begin(), result.end(), line) == result.end())
      result.push_back(line);
  }
  return result;
}

static std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Geometry and scalars of a run's launches, to see whether arguments made a difference.
static std::string fingerprint(const Workload &workload) {
  std::string text;
  for (const LaunchImage &launch : workload.launches)
    text += launch.launchClass + ";";
  return text;
}

// Threads of all captured launches: what the emulator runs many times, and what it may run a few times a variant.
static constexpr double smallThreads = 1 << 16, otherSizeThreads = 1 << 19;
// All of it is copied, filled and compared several times a variant, by as many variants as there are cores.
static constexpr uint64_t smallBytes = uint64_t(16) << 20;

double optiml::capturedThreads(const Workload &workload) {
  return llvm::sum_of(llvm::map_range(workload.launches, threadsOf), 0.0);
}

namespace {

/// The program on the emulator.
struct EmulatedProgram {
  std::string executable;
  const std::atomic<bool> *cancel;
  bool sandboxed = false;

  /// Runs it, for `took` seconds, and captures its launches into folder `into`.
  llvm::Error run(const std::vector<std::string> &args, const std::string &into, double seconds, Workload &workload,
                  double &took, bool *timedOut = nullptr) const {
    emu::RunOptions how;
    how.args = args;
    how.captureDir = into;
    how.seconds = seconds;
    how.cancel = cancel;
    how.sandboxed = sandboxed;
    auto result = emu::runProgram(executable, how);
    if (!result)
      return result.takeError();
    took = result->seconds;
    if (timedOut)
      *timedOut = result->timedOut;
    if (!result->ok()) {
      llvm::StringRef message = llvm::StringRef(result->err).trim();
      if (message.empty())
        message = llvm::StringRef(result->out).trim();
      std::string what = "the program" + (args.empty() ? "" : " with arguments '" + joined(args) + "'");
      if (result->timedOut)
        return makeError(
            "{0} ran longer than {1:f1} s on the CPU emulator; --optiml-time=SECONDS allows more, up to half of "
            "the time of -O-search; --optiml-args=ARGS gives it less to do",
            what, seconds);
      if (result->cancelled)
        return makeError("{0} was stopped before it ended", what);
      return makeError("{0} {1}{2} on the CPU emulator{3}", what, result->exitCode ? "ended with " : "",
                       result->describe(), message.empty() ? "" : ": " + message.take_back(600).str());
    }
    std::string error;
    if (!Workload::read(into, workload, error))
      return makeError("{0}", error);
    return llvm::Error::success();
  }
};

} // namespace

static llvm::Expected<EmulatedProgram> buildEmulated(const CompileOptions &options, const Toolchain &toolchain,
                                                     const ChangedFiles &changed, const std::string &directory,
                                                     const std::atomic<bool> *cancel) {
  EmulatedProgram program{directory + "/program", cancel};
  if (llvm::Error e = emu::buildProgram(options, changed, toolchain, emu::ModeBounds, program.executable))
    return std::move(e);
  return program;
}

/// Adds runs with other sizes. `own` tells the launches of the program's own run, if it is known. Stops at the first
/// run that takes longer than `seconds`: the others hardly take less. `total`: seconds of all of them, infinity for no
/// limit.
static void addOtherSizes(EmulatedProgram program, const std::vector<std::string> &arguments,
                          const std::string &directory, double seconds, double total, std::string own,
                          CapturedRuns &runs) {
  const Deadline deadline(total, program.cancel);
  program.cancel = deadline.flag();
  size_t ignored = SIZE_MAX; // so many arguments
  std::set<std::string> seen = {own};
  for (const std::vector<std::string> &args : oddArguments(arguments)) {
    if (runs.otherSizes.size() == 3 || deadline.passed())
      break;
    if (args.size() == ignored)
      continue;
    if (!runs.arguments.empty() && arguments.empty() &&
        args.size() != llvm::StringRef(runs.arguments[0]).count(' ') + 1)
      break; // another number of sizes than the one the program takes
    Workload workload;
    std::string into = directory + "/size" + std::to_string(runs.otherSizes.size());
    double took = 0;
    bool timedOut = false;
    if (llvm::Error e = program.run(args, into, seconds, workload, took, &timedOut)) {
      llvm::consumeError(std::move(e)); // the program does not take these
      llvm::sys::fs::remove_directories(into);
      if (timedOut)
        break;
      continue;
    }
    // A program that ignores its arguments, or so many of them, does the same again and again.
    bool same = !seen.insert(fingerprint(workload)).second;
    if (same && arguments.empty())
      ignored = args.size();
    if (workload.launches.empty() || same || capturedThreads(workload) > otherSizeThreads) {
      llvm::sys::fs::remove_directories(into);
      continue;
    }
    runs.otherSizes.push_back(std::move(workload));
    runs.arguments.push_back(joined(args));
  }
}

llvm::Expected<CapturedRuns> optiml::captureRuns(const CompileOptions &options, const Toolchain &toolchain,
                                                 const ChangedFiles &changed, const std::vector<std::string> &arguments,
                                                 const std::string &directory, double ownSeconds, double otherSeconds,
                                                 const std::atomic<bool> *cancel) {
  auto program = buildEmulated(options, toolchain, changed, directory, cancel);
  if (!program)
    return program.takeError();
  CapturedRuns runs;
  if (llvm::Error e = program->run(arguments, directory + "/run", ownSeconds, runs.performance, runs.seconds))
    return std::move(e);
  if (runs.performance.launches.empty())
    return makeError("the program launches no kernel that could be captured");
  // Small sizes that take a good part of the own run's time are none: the program ignores its arguments.
  double each = std::clamp(runs.seconds / 4, leastOtherSeconds, mostOtherSeconds);
  if (otherSeconds > 0)
    addOtherSizes(*program, arguments, directory, std::min(each, ownSeconds), otherSeconds,
                  fingerprint(runs.performance), runs);
  return runs;
}

llvm::Expected<Workload> optiml::captureChanged(const CompileOptions &options, const Toolchain &toolchain,
                                                const ChangedFiles &changed, const std::vector<std::string> &arguments,
                                                const std::string &directory, double seconds, bool sandboxed,
                                                const std::atomic<bool> *cancel) {
  EmulatedProgram program{directory + "/changed", cancel, sandboxed};
  if (llvm::Error e = emu::buildProgram(options, changed, toolchain, emu::ModeBounds, program.executable))
    return std::move(e);
  Workload launches;
  double took = 0;
  if (llvm::Error e = program.run(arguments, directory + "/changed-run", seconds, launches, took))
    return std::move(e);
  if (launches.launches.empty())
    return makeError("the rewritten program launches no kernel that could be captured");
  return launches;
}

llvm::Expected<CapturedRuns> optiml::captureOtherSizes(const CompileOptions &options, const Toolchain &toolchain,
                                                       const ChangedFiles &changed,
                                                       const std::vector<std::string> &arguments,
                                                       const std::string &directory, double seconds, double total,
                                                       const std::atomic<bool> *cancel) {
  auto program = buildEmulated(options, toolchain, changed, directory, cancel);
  if (!program)
    return program.takeError();
  CapturedRuns runs;
  addOtherSizes(*program, arguments, directory, seconds, total, "", runs);
  return runs;
}

/// A folder that has the files of another one, and can have a workload.json of its own. Replays see no other folder, so
/// that symbolic links would lead nowhere.
static llvm::Error linkFiles(const std::string &from, const std::string &to) {
  if (std::error_code e = llvm::sys::fs::create_directories(to))
    return makeError("{0}: {1}", to, e.message());
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(from, error), end; at != end && !error; at.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(at->path());
    if (name == "workload.json")
      continue;
    const std::string own = to + "/" + name.str();
    if (!llvm::sys::fs::create_hard_link(at->path(), own))
      continue;
    if (std::error_code e = llvm::sys::fs::copy_file(at->path(), own)) // another file system
      return makeError("{0}/{1}: {2}", to, name, e.message());
  }
  return error ? makeError("{0}: {1}", from, error.message()) : llvm::Error::success();
}

llvm::Expected<CapturedRuns> optiml::recordedRuns(const std::vector<std::string> &folders, const ThreadRange &threads,
                                                  const Program &program, const std::string &directory) {
  CapturedRuns runs;
  for (const std::string &folder : folders) {
    const std::string from = absolutePath(folder);
    Workload workload;
    std::string error;
    if (!Workload::read(from, workload, error))
      return makeError("--optiml-workload: {0}", error);
    workload.directory = directory + "/recorded" + std::to_string(&folder - folders.data());
    if (llvm::Error e = linkFiles(from, workload.directory))
      return std::move(e);
    llvm::erase_if(workload.launches, [&](const LaunchImage &launch) {
      return !threads.contains(threadsOf(launch)) || llvm::none_of(program.kernels(), [&](const KernelDecl &k) {
        return sameFunction(k.symbol, launch.kernel);
      });
    });
    if (workload.launches.empty() && !threads.isAll())
      continue; // a recording of smaller or larger launches
    if (workload.launches.empty())
      return makeError("--optiml-workload: {0} holds no launch of a kernel of {1}", folder, program.path());
    if (!workload.write(error))
      return makeError("{0}", error);
    if (llvm::Error e = nameElements(workload, program))
      return std::move(e);
    if (runs.performance.launches.empty())
      runs.performance = std::move(workload);
    else
      runs.otherSizes.push_back(std::move(workload));
  }
  if (runs.performance.launches.empty())
    return makeError("--optiml-workload: no launch of a kernel of {0} has {1} threads", program.path(), threads.str());
  return runs;
}

bool optiml::isSmall(const Workload &workload) {
  uint64_t bytes = 0;
  for (const LaunchImage &launch : workload.launches)
    bytes += bytesOf(launch);
  return capturedThreads(workload) <= smallThreads && bytes <= smallBytes;
}

void optiml::dropOwnSize(const Workload &own, CapturedRuns &runs) {
  for (size_t i = runs.otherSizes.size(); i-- > 0;) {
    std::set<std::string> classes;
    for (const LaunchImage &launch : runs.otherSizes[i].launches)
      classes.insert(launch.launchClass);
    bool same = std::all_of(own.launches.begin(), own.launches.end(),
                            [&](const LaunchImage &launch) { return classes.count(launch.launchClass); });
    if (!same)
      continue;
    runs.otherSizes.erase(runs.otherSizes.begin() + i);
    runs.arguments.erase(runs.arguments.begin() + i);
  }
}
