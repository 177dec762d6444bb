//===- DerivedSizes.cpp - smaller launches from recorded ones -------------===//
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "ReplayProcess.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Recorder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

using namespace optiml;
namespace fs = llvm::sys::fs;

// Of one launch: what takes longer is no smaller test. Variants take some ten times as long under the checkers. Less,
// where a shorter one is there, too, or where it is one of many.
static constexpr double mostSeconds = 0.15, mostOfMany = 0.04;

namespace {

class Deriving {
public:
  Deriving(const Workload &recorded, const CheckedModules &original, const VerifyOptions &options,
           const std::string &directory, double seconds)
      : recorded(recorded), original(original), options(options), deadline(seconds, options.cancel),
        probe(directory + "/probe") {
    derived.directory = directory;
  }
  /// Adds the launch where the original runs it well, in so many seconds; false where it does not.
  llvm::Expected<bool> add(const LaunchImage &launch, const SizedKernel &kernel, double most = mostSeconds);
  /// Adds launches like those of this kernel, but with larger integers in buffers, where the original runs them well:
  /// one of each kind of sizes.
  llvm::Error addWider(const LaunchImage &recordedLaunch, const SizedKernel &kernel);
  bool isOver() const { return deadline.passed(); }
  llvm::Expected<Workload> finish();

private:
  /// Nothing: the original shows a fault, or takes too long.
  llvm::Expected<std::optional<emu::ReplayResult>> run(emu::ReplayJob job);
  /// How many bytes of its buffers the original uses.
  llvm::Expected<std::optional<std::vector<uint64_t>>> touched(LaunchImage launch, const SizedKernel &kernel);
  llvm::Error cut(BufferImage &buffer, uint64_t bytes);
  /// Another content for a buffer of a derived launch.
  llvm::Error fill(BufferImage &buffer, const std::string &content);
  llvm::Expected<LaunchImage> wider(LaunchImage launch, const SizedKernel &kernel);
  /// Whether the original runs the last launch well; it stays then.
  llvm::Expected<bool> keepLast(const SizedKernel &kernel, double most = mostSeconds);

  const Workload &recorded;
  const CheckedModules &original;
  const VerifyOptions &options;
  const Deadline deadline;
  const std::string probe;
  Workload derived;
};

} // namespace

llvm::Expected<std::optional<emu::ReplayResult>> Deriving::run(emu::ReplayJob job) {
  job.seconds = std::min(3 * mostSeconds, deadline.remaining());
  auto ended = runReplay(options, job, probe, job.seconds + 5);
  if (!ended)
    return ended.takeError();
  emu::ReplayResult result;
  std::string error;
  if (!ended->ok() || !emu::readResult(probe + "/result.json", result, error) || !result.ok || !result.faults.empty())
    return std::nullopt;
  return result;
}

llvm::Expected<std::optional<std::vector<uint64_t>>> Deriving::touched(LaunchImage launch, const SizedKernel &kernel) {
  // Files that take no room stand for the buffers; the recorded ones are given as inputs, and read where they are used.
  emu::ReplayJob job = replayJob(original.bounds, probe, 0, identityPlan(launch, kernel.symbol));
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    BufferImage &buffer = launch.buffers[i];
    if (!buffer.initial)
      job.inputs[i] = recorded.directory + "/" + buffer.before;
    buffer.before = buffer.after = "empty" + std::to_string(buffer.bytes) + ".bin";
    std::error_code error;
    const std::string file = probe + "/" + buffer.before;
    if (int fd = -1; !fs::exists(file) && !(error = fs::openFileForWrite(file, fd))) {
      error = fs::resize_file(fd, buffer.bytes);
      llvm::sys::Process::SafelyCloseFileDescriptor(fd);
    }
    if (error)
      return makeError("{0}: {1}", file, error.message());
  }
  Workload workload;
  workload.directory = probe;
  workload.launches = {std::move(launch)};
  std::string error;
  if (!workload.write(error))
    return makeError("{0}", error);
  job.tellsTouched = true;
  auto result = run(std::move(job));
  if (!result)
    return result.takeError();
  if (!*result)
    return std::nullopt;
  return std::move((*result)->touched);
}

/// Its first bytes, as another file.
llvm::Error Deriving::cut(BufferImage &buffer, uint64_t bytes) {
  std::ifstream in(recorded.directory + "/" + buffer.before, std::ios::binary);
  std::string content(bytes, 0);
  if (!in.read(content.data(), std::streamsize(bytes)))
    return makeError("{0}/{1}: cannot be read", recorded.directory, buffer.before);
  return fill(buffer, content);
}

llvm::Expected<bool> Deriving::add(const LaunchImage &launch, const SizedKernel &kernel, double most) {
  auto used = touched(launch, kernel);
  if (!used)
    return used.takeError();
  if (!*used || (*used)->size() != launch.buffers.size())
    return false;
  LaunchImage smaller = launch;
  constexpr uint64_t mostUntouched = 1 << 16; // other data may lead there, who knows how far
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    if (uint64_t &bytes = (**used)[i]; !bytes)
      bytes = std::min(launch.buffers[i].bytes, mostUntouched);
  for (const ArgumentImage &argument : launch.arguments) // what nobody reads may be pointed to
    if (argument.buffer >= 0) {
      uint64_t &bytes = (**used)[size_t(argument.buffer)];
      bytes = std::max(bytes, argument.offset + 1);
    }
  std::vector<uint64_t> bufferBytes;
  for (size_t i = 0; i < smaller.buffers.size(); ++i) {
    BufferImage &buffer = smaller.buffers[i];
    const uint64_t bytes = std::clamp<uint64_t>((**used)[i], 1, buffer.bytes);
    if (llvm::Error e = cut(buffer, buffer.symbol.empty() ? bytes : buffer.bytes))
      return std::move(e);
  }
  for (const ArgumentImage &argument : smaller.arguments)
    bufferBytes.push_back(argument.buffer >= 0 ? smaller.buffers[size_t(argument.buffer)].bytes : 0);
  smaller.launchClass = launchClassOf(smaller, bufferBytes);
  smaller.weight = 1;
  smaller.sequence = derived.launches.size();
  derived.launches.push_back(std::move(smaller));
  return keepLast(kernel, most);
}

llvm::Expected<bool> Deriving::keepLast(const SizedKernel &kernel, double most) {
  std::string error;
  if (!derived.write(error))
    return makeError("{0}", error);
  const auto last = unsigned(derived.launches.size() - 1);
  auto result =
      run(replayJob(original.verify, derived.directory, last, identityPlan(derived.launches.back(), kernel.symbol)));
  if (!result)
    return result.takeError();
  const bool isGood = *result && (*result)->seconds <= most;
  if (!isGood)
    derived.launches.pop_back();
  return isGood;
}

llvm::Error Deriving::fill(BufferImage &buffer, const std::string &content) {
  std::string error;
  buffer.bytes = content.size();
  buffer.before = buffer.after = blobName(content.data(), content.size());
  return writeBlob(derived.directory, buffer.before, content.data(), content.size(), error) ? llvm::Error::success()
                                                                                            : makeError("{0}", error);
}

// How much larger integers in buffers become, and the buffers that they may lead into, up to which length.
static constexpr int64_t timesLarger = 40;
static constexpr size_t mostWider = 4;
static constexpr uint64_t longestBytes = uint64_t(1) << 20;

/// Allocations that have grown begin further behind one another, in their order; arguments follow them.
static void moveApart(LaunchImage &launch, const std::vector<uint64_t> &before) {
  constexpr uint64_t page = 4096;
  std::vector<size_t> order;
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    if (launch.buffers[i].symbol.empty())
      order.push_back(i);
  llvm::sort(order, [&](size_t a, size_t b) { return launch.buffers[a].address < launch.buffers[b].address; });
  uint64_t shift = 0;
  for (size_t i : order) {
    launch.buffers[i].address += shift;
    shift += llvm::alignTo(launch.buffers[i].bytes - before[i], page);
  }
  for (ArgumentImage &argument : launch.arguments)
    if (argument.isPointer && argument.buffer >= 0) {
      const uint64_t value = launch.buffers[size_t(argument.buffer)].address + argument.offset;
      memcpy(argument.bytes.data(), &value, sizeof value);
    }
}

llvm::Expected<LaunchImage> Deriving::wider(LaunchImage other, const SizedKernel &kernel) {
  std::vector<uint64_t> before;
  for (const BufferImage &buffer : other.buffers)
    before.push_back(buffer.bytes);
  std::map<int, ArgumentInteger> indices; // by buffer
  for (const ArgumentInteger &index : kernel.indices)
    indices.emplace(other.arguments[index.argument].buffer, index);
  for (size_t i = 0; i < other.buffers.size(); ++i) {
    BufferImage &buffer = other.buffers[i];
    std::ifstream in(derived.directory + "/" + buffer.before, std::ios::binary);
    std::string content(buffer.bytes, 0);
    if (!buffer.symbol.empty() || !in.read(content.data(), std::streamsize(content.size())))
      continue;
    if (auto index = indices.find(int(i)); index != indices.end()) {
      const unsigned bytes = index->second.bytes;
      for (size_t at = 0; at + bytes <= content.size(); at += bytes) {
        int64_t value = 0;
        memcpy(&value, content.data() + at, bytes);
        value *= timesLarger; // what is cut off leads anywhere: then the original shows it
        memcpy(content.data() + at, &value, bytes);
      }
    } else {
      const uint64_t length = std::max(content.size(), std::min(content.size() * uint64_t(timesLarger), longestBytes));
      for (const std::string once = content; content.size() < length;)
        content += once.substr(0, size_t(length - content.size()));
    }
    if (llvm::Error e = fill(buffer, content))
      return e;
  }
  moveApart(other, before);
  return other;
}

/// Of a kernel's integers those that are as recorded, and those that are odd.
static std::vector<std::pair<bool, bool>> kindOf(const LaunchImage &launch, const LaunchImage &recorded,
                                                 const SizedKernel &kernel) {
  std::vector<std::pair<bool, bool>> result;
  for (const ArgumentInteger &integer : kernel.integers) {
    const int64_t value = valueOf(launch, integer);
    result.emplace_back(value == valueOf(recorded, integer), value % 2 != 0);
  }
  return result;
}

llvm::Error Deriving::addWider(const LaunchImage &recordedLaunch, const SizedKernel &kernel) {
  std::vector<LaunchImage> own;
  llvm::copy_if(derived.launches, std::back_inserter(own),
                [&](const LaunchImage &launch) { return launch.kernel == kernel.recorded; });
  // What is left of a loop runs where its length is odd, what is written for a recorded value where that is kept.
  auto odd = [&](const LaunchImage &launch) {
    return llvm::count_if(kernel.integers, [&](const ArgumentInteger &i) { return valueOf(launch, i) % 2 != 0; });
  };
  llvm::stable_sort(own, [&](const LaunchImage &a, const LaunchImage &b) {
    return std::pair(odd(a), bytesOf(a)) > std::pair(odd(b), bytesOf(b));
  });
  std::set<std::vector<std::pair<bool, bool>>> kinds;
  for (const LaunchImage &launch : kernel.indices.empty() ? std::vector<LaunchImage>() : own) {
    if (isOver() || kinds.size() == mostWider)
      break;
    const auto kind = kindOf(launch, recordedLaunch, kernel);
    if (kinds.count(kind))
      continue;
    auto other = wider(launch, kernel);
    if (!other)
      return other.takeError();
    other->sequence = derived.launches.size();
    derived.launches.push_back(std::move(*other));
    auto isKept = keepLast(kernel);
    if (!isKept)
      return isKept.takeError();
    if (*isKept)
      kinds.insert(kind);
  }
  return llvm::Error::success();
}

llvm::Expected<Workload> Deriving::finish() {
  fs::remove_directories(probe);
  derived.totalLaunches = derived.launches.size();
  std::string error;
  if (!derived.write(error))
    return makeError("{0}", error);
  return std::move(derived);
}

llvm::Expected<Workload> optiml::deriveSizes(const Workload &recorded, const std::vector<SizedKernel> &kernels,
                                             const CheckedModules &original, const VerifyOptions &options,
                                             const std::string &directory, double seconds) {
  if (std::error_code e = fs::create_directories(directory + "/probe"))
    return makeError("{0}/probe: {1}", directory, e.message());
  Deriving deriving(recorded, original, options, directory, seconds);
  for (const SizedKernel &kernel : kernels) {
    auto launch = llvm::find_if(recorded.launches, [&](const LaunchImage &l) { return l.kernel == kernel.recorded; });
    if (launch == recorded.launches.end())
      continue;
    bool isLong = false; // what is tried first takes too long
    for (llvm::ArrayRef<LaunchImage> alternatives : launchesWithOtherSizes(*launch, kernel))
      for (const LaunchImage &other : alternatives.drop_front(isLong && alternatives.size() > 1)) {
        if (deriving.isOver())
          break;
        auto isAdded = deriving.add(other, kernel, &other == &alternatives.back() ? mostSeconds : mostOfMany);
        if (!isAdded)
          return isAdded.takeError();
        if (*isAdded)
          break;
        isLong = true;
      }
    if (!deriving.isOver())
      if (llvm::Error e = deriving.addWider(*launch, kernel))
        return std::move(e);
  }
  return deriving.finish();
}

llvm::Expected<Workload> optiml::deriveNearSizes(const Workload &recorded, const SizedKernel &kernel,
                                                 const CheckedModules &original, const VerifyOptions &options,
                                                 const std::string &directory, double seconds) {
  if (std::error_code e = fs::create_directories(directory + "/probe"))
    return makeError("{0}/probe: {1}", directory, e.message());
  Deriving deriving(recorded, original, options, directory, seconds);
  auto launch = llvm::find_if(recorded.launches, [&](const LaunchImage &l) { return l.kernel == kernel.recorded; });
  std::vector<std::vector<LaunchImage>> lists;
  if (launch != recorded.launches.end())
    lists = launchesWithNearSizes(*launch, kernel);
  bool any = false;
  for (size_t list = 0; list < lists.size(); ++list)
    for (const LaunchImage &other : lists[list]) {
      if (deriving.isOver() || (list == 1 && any))
        break;
      auto isAdded = deriving.add(other, kernel, mostOfMany);
      if (!isAdded)
        return isAdded.takeError();
      any |= !list && *isAdded;
    }
  return deriving.finish();
}
