//===- DerivedSizes.cpp - smaller launches from recorded ones -------------===//
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "BlockSample.h"
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

static int64_t valueOf(const LaunchImage &launch, const ArgumentInteger &integer) {
  const std::string &bytes = launch.arguments[integer.argument].bytes;
  uint64_t value = 0;
  memcpy(&value, bytes.data() + integer.offset, integer.bytes);
  return integer.isSigned ? llvm::SignExtend64(value, 8 * integer.bytes) : int64_t(value);
}

static void setValue(LaunchImage &launch, const ArgumentInteger &integer, int64_t value) {
  memcpy(launch.arguments[integer.argument].bytes.data() + integer.offset, &value, integer.bytes);
}

namespace {

/// Smaller values of integers that count something hardly say so: a filter's width, a number of channels.
constexpr int64_t leastSize = 8;

/// How integers of a launch become smaller, by their values.
class SmallerValues {
public:
  /// `kept`: values that are no sizes, as far as one can tell.
  SmallerValues(std::vector<int64_t> all, const std::vector<int64_t> &kept) {
    llvm::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    llvm::erase_if(all, [&](int64_t v) { return v < leastSize || llvm::is_contained(kept, v); });
    values = std::move(all);
    for (int64_t v : values) // from the smallest on
      if (!isDerived(v))
        bases.push_back(v);
  }
  size_t count() const { return bases.size(); }
  int64_t base(size_t i) const { return bases[i]; }
  /// What each value becomes when the bases become `now`.
  std::map<int64_t, int64_t> with(const std::vector<int64_t> &now) const {
    std::map<int64_t, int64_t> result;
    for (size_t i = 0; i < bases.size(); ++i)
      result[bases[i]] = now[i];
    for (int64_t v : values)
      if (!result.count(v))
        result[v] = derived(v, result);
    return result;
  }

private:
  bool isDerived(int64_t v) const {
    std::map<int64_t, int64_t> same;
    for (int64_t b : values)
      if (b < v)
        same[b] = b;
    return derived(v, same) != 0;
  }
  /// As a product of two smaller ones, or as what lies beside one; 0: it is neither.
  static int64_t derived(int64_t v, const std::map<int64_t, int64_t> &smaller) {
    for (auto [a, newA] : smaller)
      for (auto [b, newB] : smaller)
        if (a * b == v && a <= b && b < v)
          return newA * newB;
    for (auto [a, newA] : smaller)
      if (a < v) {
        if (v - a <= 2)
          return newA + (v - a);
        if (v == 2 * a || v == 2 * a + 1)
          return 2 * newA + (v - 2 * a);
      }
    return 0;
  }
  std::vector<int64_t> values, bases;
};

} // namespace

/// What the extent of a grid along one axis becomes. Where it may have been made of several integers, the least: blocks
/// that find nothing to do cost a variant that shares its work among them much.
static uint32_t gridFor(uint32_t extent, uint32_t block, const std::map<int64_t, int64_t> &values) {
  int64_t result = 0;
  auto consider = [&](int64_t before, int64_t now) {
    const bool isBlocks = int64_t(llvm::divideCeil(uint64_t(before), block)) == extent;
    if (!isBlocks && before != extent)
      return;
    const int64_t own = isBlocks ? int64_t(llvm::divideCeil(uint64_t(now), block)) : now;
    result = result ? std::min(result, own) : own;
  };
  for (auto [before, now] : values)
    consider(before, now);
  if (!result)
    for (auto [a, newA] : values)
      for (auto [b, newB] : values)
        if (a <= b && b <= INT32_MAX)
          consider(a * b, newA * newB);
  // What follows from no integer (heads, or blocks that share all work) is no test where there are many.
  constexpr uint32_t most = 2;
  return uint32_t(std::min<int64_t>(result > 0 ? result : most, extent));
}

/// The launch with other sizes in place of the bases.
static LaunchImage launchWith(const LaunchImage &launch, const std::vector<ArgumentInteger> &integers,
                              const SmallerValues &smaller, const std::vector<int64_t> &now) {
  const std::map<int64_t, int64_t> values = smaller.with(now);
  LaunchImage other = launch;
  for (const ArgumentInteger &integer : integers)
    if (auto it = values.find(valueOf(launch, integer)); it != values.end())
      setValue(other, integer, it->second);
  for (unsigned axis = 0; axis < 3; ++axis)
    other.grid[axis] = gridFor(launch.grid[axis], launch.block[axis], values);
  return other;
}

// Odd sizes beside what tiles take; whole tiles; hardly anything; and whole pieces of 16 bytes beside tiles. They rise,
// so that what was no smaller than another one, as the distance of rows, stays so.
static constexpr int64_t odd[] = {37, 43, 53, 61, 67, 71}, whole[] = {32, 64, 96, 128, 160, 192}, few[] = {1, 2, 3, 5},
                         pieces[] = {36, 44, 52, 60, 68, 76}, fewPieces[] = {4, 8, 12, 20};

// So many sizes are kept at most, and none that is larger: launches would not be small.
static constexpr size_t mostKept = 2;
static constexpr int64_t largestKept = 256;

/// A length of more than one block, odd, or a whole number of what `size` is.
static constexpr int64_t lengthOf(int64_t size) { return size % 2 ? size * 15 + 2 : size % 8 ? size * 15 : size * 8; }

std::vector<std::vector<LaunchImage>> optiml::launchesWithOtherSizes(const LaunchImage &launch,
                                                                     const SizedKernel &kernel) {
  std::vector<int64_t> all, kept;
  for (const ArgumentInteger &integer : kernel.integers)
    all.push_back(valueOf(launch, integer));
  for (uint32_t extent : launch.block)
    if (extent > 1)
      kept.push_back(extent);
  const SmallerValues smaller(all, kept);
  std::vector<std::vector<LaunchImage>> result;
  auto add = [&](std::vector<LaunchImage> alternatives) {
    llvm::erase_if(alternatives, [&](const LaunchImage &other) {
      auto isSame = [&](const LaunchImage &known) {
        return known.grid == other.grid &&
               llvm::equal(known.arguments, other.arguments, [](auto &a, auto &b) { return a.bytes == b.bytes; });
      };
      return isSame(launch) || llvm::any_of(result, [&](const auto &known) { return isSame(known.front()); });
    });
    if (!alternatives.empty())
      result.push_back(std::move(alternatives));
  };
  const llvm::ArrayRef<int64_t> common[] = {odd, whole, few}, rare[] = {pieces, fewPieces};
  auto lists = llvm::to_vector(llvm::ArrayRef(rare));
  if (!kernel.addsRare)
    lists.insert(lists.begin(), std::begin(common), std::end(common));
  for (llvm::ArrayRef<int64_t> sizes : lists) {
    std::vector<int64_t> now;
    for (size_t i = 0; i < smaller.count(); ++i) {
      int64_t size = sizes[i % sizes.size()];
      if (smaller.count() == 1 && size >= leastSize &&
          llvm::count_if(launch.grid, [](uint32_t e) { return e > 1; }) < 2)
        size = lengthOf(size);
      if (size >= smaller.base(i) && smaller.base(i) > sizes[0]) // something between
        size = size % 2 ? smaller.base(i) * 5 / 8 | 1 : smaller.base(i) / 2 / sizes[0] * sizes[0];
      now.push_back(std::clamp<int64_t>(size, 1, smaller.base(i)));
    }
    if (!now.empty())
      add({launchWith(launch, kernel.integers, smaller, now)});
  }
  for (size_t keeps = 0; keeps <= mostKept && keeps < smaller.count(); ++keeps) {
    if (keeps && smaller.base(keeps - 1) > largestKept)
      break;
    auto with = [&](int64_t least, bool isLong) {
      std::vector<int64_t> now;
      for (size_t i = 0; i < smaller.count(); ++i) {
        const int64_t size = odd[i % std::size(odd)],
                      more = least + (isLong && i + 1 == smaller.count() ? lengthOf(size) : size);
        now.push_back(i < keeps ? smaller.base(i) : std::min(more | 1, smaller.base(i)));
      }
      return launchWith(launch, kernel.integers, smaller, now);
    };
    std::vector<LaunchImage> alternatives, shorter;
    // The others may have to be no smaller than what is kept.
    for (int64_t least : std::set<int64_t>{0, keeps ? smaller.base(keeps - 1) : 0}) {
      LaunchImage other = with(least, /*isLong=*/false);
      if (blocksOf(other.grid) == 1) {
        shorter.push_back(other); // where what is kept makes more blocks take too long
        other = with(least, true);
      }
      alternatives.push_back(std::move(other));
    }
    llvm::move(shorter, std::back_inserter(alternatives));
    // Blocks that find nothing to do, where the kernel looks whether there is something.
    for (LaunchImage &other : alternatives)
      for (unsigned axis = 0; axis < 3; ++axis)
        other.grid[axis] += launch.grid[axis] > 1;
    add(std::move(alternatives));
  }
  return result;
}

namespace {

class Deriving {
public:
  Deriving(const Workload &recorded, const CheckedModules &original, const VerifyOptions &options,
           const std::string &directory, double seconds)
      : recorded(recorded), original(original), options(options), deadline(seconds, options.cancel),
        probe(directory + "/probe") {
    derived.directory = directory;
  }
  /// Adds the launch where the original runs it well; false where it does not.
  llvm::Expected<bool> add(const LaunchImage &launch, const SizedKernel &kernel);
  /// Adds a launch like one of this kernel's, the larger first, but with larger integers in buffers, where the original
  /// runs it well.
  llvm::Error addWider(const SizedKernel &kernel);
  bool isOver() const { return deadline.passed(); }
  Workload finish();

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
  llvm::Expected<bool> keepLast(const SizedKernel &kernel);

  const Workload &recorded;
  const CheckedModules &original;
  const VerifyOptions &options;
  const Deadline deadline;
  const std::string probe;
  Workload derived;
};

} // namespace

// Of one launch: what takes longer is no smaller test. Variants take some ten times as long under the checkers.
static constexpr double mostSeconds = 0.15;

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

llvm::Expected<bool> Deriving::add(const LaunchImage &launch, const SizedKernel &kernel) {
  auto used = touched(launch, kernel);
  if (!used)
    return used.takeError();
  if (!*used || (*used)->size() != launch.buffers.size())
    return false;
  LaunchImage smaller = launch;
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
  return keepLast(kernel);
}

llvm::Expected<bool> Deriving::keepLast(const SizedKernel &kernel) {
  std::string error;
  if (!derived.write(error))
    return makeError("{0}", error);
  const auto last = unsigned(derived.launches.size() - 1);
  auto result =
      run(replayJob(original.verify, derived.directory, last, identityPlan(derived.launches.back(), kernel.symbol)));
  if (!result)
    return result.takeError();
  const bool isGood = *result && (*result)->seconds <= mostSeconds;
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

llvm::Error Deriving::addWider(const SizedKernel &kernel) {
  std::vector<LaunchImage> own;
  llvm::copy_if(derived.launches, std::back_inserter(own),
                [&](const LaunchImage &launch) { return launch.kernel == kernel.recorded; });
  llvm::sort(own, [](const LaunchImage &a, const LaunchImage &b) { return bytesOf(a) > bytesOf(b); });
  for (const LaunchImage &launch : kernel.indices.empty() ? std::vector<LaunchImage>() : own) {
    if (isOver())
      break;
    auto other = wider(launch, kernel);
    if (!other)
      return other.takeError();
    other->sequence = derived.launches.size();
    derived.launches.push_back(std::move(*other));
    auto isKept = keepLast(kernel);
    if (!isKept)
      return isKept.takeError();
    if (*isKept)
      break;
  }
  return llvm::Error::success();
}

Workload Deriving::finish() {
  fs::remove_directories(probe);
  derived.totalLaunches = derived.launches.size();
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
    for (const std::vector<LaunchImage> &alternatives : launchesWithOtherSizes(*launch, kernel))
      for (const LaunchImage &other : alternatives) {
        if (deriving.isOver())
          break;
        auto isAdded = deriving.add(other, kernel);
        if (!isAdded)
          return isAdded.takeError();
        if (*isAdded)
          break;
      }
    if (!deriving.isOver())
      if (llvm::Error e = deriving.addWider(kernel))
        return std::move(e);
  }
  Workload derived = deriving.finish();
  std::string error;
  if (!derived.write(error))
    return makeError("{0}", error);
  return derived;
}
