//===- GpuCases.cpp - what a launch is compared on, on a GPU --------------===//
#include "GpuCases.h"
#include "BlockSample.h"
#include "BufferCompare.h"
#include "ConcretePlan.h"
#include "ReplayProcess.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Processors.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ThreadPool.h"
#include <cmath>
#include <thread>

using namespace optiml;
using gpu::BufferBound;
using gpu::Compare;

// A launch of no more threads than this, on no more data, is recomputed whole; otherwise so many of its blocks. Of
// either no more than begin in a share of the time that there is.
static constexpr uint64_t wholeThreads = 1 << 16, wholeBytes = 8 << 20;
static constexpr unsigned sampledBlocks = 8, fewestSampled = 2;
// ... of which so much of the data should be.
static constexpr uint64_t sampledBytes = 8 << 20;
static constexpr double beginShare = 0.25;
// Cells of a buffer that are checked one by one; more would not tell more.
static constexpr size_t mostCells = 1 << 18;
// Fresh inputs are written to files, and read again by each worker.
static constexpr uint64_t mostFreshBytes = uint64_t(512) << 20;

static std::vector<uint32_t> sampleBlocks(const LaunchImage &launch) {
  const uint64_t blocks = blocksOf(launch.grid), bytes = bytesOf(launch);
  if (threadsOf(launch) <= wholeThreads && bytes <= wholeBytes)
    return {};
  uint64_t affordable = sampledBytes / std::max<uint64_t>(1, bytes / std::max<uint64_t>(1, blocks));
  return spreadBlocks(blocks, unsigned(std::clamp<uint64_t>(affordable, fewestSampled, sampledBlocks)));
}

static Compare compareOf(const ElementType &type) {
  switch (type.kind) {
  case ElementKind::Float: return Compare::Float;
  case ElementKind::Double: return Compare::Double;
  case ElementKind::Half: return Compare::Half;
  case ElementKind::BFloat16: return Compare::BFloat16;
  case ElementKind::Integer:
  case ElementKind::Unknown: return Compare::Bits;
  }
  return Compare::Bits;
}

/// Of structures with floats, or with doubles, beside integers; those of both are compared bit for bit.
static Compare compareOf(const RecordLayout &layout) {
  Compare how = Compare::Bits;
  for (const RecordField &field : layout.fields) {
    if (!field.type.isFloating())
      continue;
    const Compare own = compareOf(field.type);
    if (field.type.isFloat16() || (how != Compare::Bits && own != how))
      return Compare::Bits;
    how = own;
  }
  return how;
}

static bool is32Or64(Compare how) { return how == Compare::Float || how == Compare::Double; }

namespace {
/// The numbers that some blocks stored.
struct Sample {
  BufferReference numbers;      ///< one after the other
  std::vector<uint64_t> places; ///< offset of each in its buffer
};
} // namespace

/// Reads b<i>.bin and b<i>.shadow of a replay with numbersOnly; empty where there are none.
static Sample readSample(const std::string &file, uint64_t bufferBytes) {
  Sample sample;
  auto bytes = readFile(file + ".bin"), records = readFile(file + ".shadow");
  if (!bytes || !records) {
    llvm::consumeError(bytes.takeError());
    llvm::consumeError(records.takeError());
    return sample;
  }
  std::vector<ShadowRecord> cells(records->size() / sizeof(ShadowRecord));
  memcpy(cells.data(), records->data(), cells.size() * sizeof(ShadowRecord));
  std::vector<std::pair<uint64_t, ShadowRecord>> placed;
  uint64_t offset = 0;
  for (ShadowRecord &cell : cells) {
    placed.emplace_back(cell.offset, cell);
    placed.back().second.offset = offset;
    offset += cell.bytes;
  }
  llvm::stable_sort(placed, [](const auto &a, const auto &b) { return a.first < b.first; });
  uint64_t end = 0;
  for (auto &[place, cell] : placed) {
    if ((cell.bytes != 2 && cell.bytes != 4 && cell.bytes != 8) || place < end || place + cell.bytes > bufferBytes ||
        cell.offset + cell.bytes > bytes->size())
      continue; // stale where it overlaps the one before
    end = place + cell.bytes;
    sample.numbers.bytes.append(*bytes, cell.offset, cell.bytes);
    cell.offset = sample.numbers.bytes.size() - cell.bytes;
    sample.numbers.cells.push_back(cell);
    sample.places.push_back(place);
  }
  setErrors({&sample.numbers});
  return sample;
}

/// Whether what the sampled blocks left in the cells is what the whole launch left: not where other blocks add to them.
static bool sampleIsWhole(const Sample &sample, llvm::StringRef whole) {
  for (size_t i = 0; i < sample.numbers.cells.size(); ++i) {
    const ShadowRecord &cell = sample.numbers.cells[i];
    if (cell.bytes == 2)
      continue; // compared by the format alone
    double a = cellValue(sample.numbers.bytes, cell.offset, cell.bytes),
           b = cellValue(whole, sample.places[i], cell.bytes);
    if (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) > 1e-3 * std::max(cell.magnitude, std::fabs(a)))
      return false;
  }
  return true;
}

void GpuCases::recompute(unsigned index, const std::map<unsigned, std::string> &inputs,
                         std::vector<BufferBound> &bounds) {
  const LaunchImage &launch = workload.launches[index];
  std::string folder = directory + "/shadow" + std::to_string(counter++);
  llvm::sys::fs::create_directory(folder);
  auto cleanup = llvm::scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  emu::ReplayJob job = replayJob(shadowModule, workload.directory, index, identityPlan(launch, launch.kernel));
  job.inputs = inputs;
  job.outputDir = folder;
  job.onlyBlocks = sampleBlocks(launch);
  job.seconds = sampleSeconds;
  job.beginSeconds = beginShare * sampleSeconds;
  job.numbersOnly = true;
  job.workers = std::max(1u, availableProcessors() / unsigned(workload.launches.size()));
  auto fail = [&](const std::string &why) {
    std::lock_guard lock(mutex);
    tooLong.insert(index);
    remarks.push_back("kernel " + launch.name +
                      " is compared with a general tolerance, for its blocks could not be "
                      "recomputed in double precision: " +
                      why);
  };
  auto child = runReplay(options, job, folder, sampleSeconds + 10);
  if (!child)
    return fail(llvm::toString(child.takeError()));
  emu::ReplayResult done;
  std::string error;
  if (!child->ok() || !readResult(folder + "/result.json", done, error))
    return fail("the replay " + child->describe());
  if (!done.ok)
    return fail(done.faults.empty() ? "no reason was given" : done.faults.front().message);
  for (BufferBound &bound : bounds)
    if (is32Or64(bound.compare)) // the shadow keeps no twins of others
      boundByTwins(index, !inputs.empty(), folder + "/b" + std::to_string(bound.buffer), done.begun, bound);
}

void GpuCases::boundByTwins(unsigned index, bool isFresh, const std::string &file, uint64_t begun, BufferBound &bound) {
  const LaunchImage &launch = workload.launches[index];
  const BufferImage &image = launch.buffers[bound.buffer];
  uint64_t blocks = blocksOf(launch.grid);
  const Sample sample = readSample(file, image.bytes);
  const BufferReference &r = sample.numbers;
  if (r.cells.empty())
    return;
  if (!isFresh && begun != blocks) {
    auto after = llvm::MemoryBuffer::getFile(workload.directory + "/" + image.after, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
    if (!after || (*after)->getBufferSize() != image.bytes)
      return;
    if (!sampleIsWhole(sample, (*after)->getBuffer())) {
      std::lock_guard lock(mutex);
      summed.insert({index, bound.buffer});
    }
  }
  uint32_t size = bound.compare == Compare::Float ? 4 : 8;
  bound.relative = relativeTolerance(r, size, options.floats);
  bound.typical = 0;
  if (isSummed(index, bound.buffer)) {
    // All blocks add to these cells. Their terms are like those of the sample, and sums of n terms in two orders
    // differ by about sqrt(n) roundings (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
    double unit = size == 4 ? 0x1p-24 : 0x1p-53, n = double(threadsOf(launch)),
           ofSample = double(blocks) / double(begun);
    for (const ShadowRecord &cell : r.cells)
      if (cell.bytes == size && std::isfinite(cell.magnitude)) {
        bound.typical = std::max(bound.typical, cell.magnitude * ofSample);
        n = std::max(n, cell.additions * ofSample); // threads may add many terms each
      }
    // Of very many terms of one sign, those below half a unit in the last place of the sum are lost when they are
    // added one by one: half of 2^25 equal ones. Variants that add partial sums lose less than the original.
    bound.relative = std::max({bound.relative, 8 * unit * std::sqrt(n), unit / 64 * n});
    return;
  }
  std::vector<gpu::CheckedCell> checked;
  size_t stride = r.cells.size() / mostCells + 1;
  for (size_t i = 0; i < r.cells.size(); ++i) {
    const ShadowRecord &cell = r.cells[i];
    if (cell.bytes != size || !std::isfinite(cell.magnitude))
      continue;
    bound.typical = std::max(bound.typical, cell.magnitude);
    if (i % stride == 0 && std::isfinite(cell.value))
      checked.push_back({sample.places[i], cell.bytes, 0, cell.value,
                         relativeTolerance(r, cell, options.floats) * cell.magnitude + 1e-37});
  }
  if (bound.typical == 0)
    bound.typical = -1; // zeros tell nothing of the others (a ReLU that lets nothing through)
  bound.cells = directory + "/cells" + std::to_string(counter++);
  llvm::StringRef raw(reinterpret_cast<const char *>(checked.data()), checked.size() * sizeof(gpu::CheckedCell));
  llvm::Error written = writeFileAtomically(bound.cells, raw);
  if (checked.empty() || written)
    bound.cells.clear();
  llvm::consumeError(std::move(written));
}

bool GpuCases::isSummed(unsigned launch, unsigned buffer) {
  std::lock_guard lock(mutex);
  return summed.count({launch, buffer});
}

std::vector<BufferBound> GpuCases::bounds(unsigned index, const std::map<unsigned, std::string> &inputs) {
  const LaunchImage &launch = workload.launches[index];
  std::vector<ElementType> types = bufferTypes(launch);
  std::vector<BufferBound> result;
  if (options.floats.isStrict())
    return result;
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    BufferBound bound;
    bound.buffer = i;
    auto layout = recordLayout(launch.buffers[i].element);
    bound.compare = layout ? compareOf(*layout) : compareOf(types[i]);
    bound.typical = -1; // not known yet
    if (types[i].isFloat16() && options.floats.isFast())
      bound.relative = options.floats.error;
    if (bound.compare != Compare::Bits)
      result.push_back(bound);
  }
  std::unique_lock lock(mutex);
  bool known = tooLong.count(index);
  lock.unlock();
  bool any = llvm::any_of(result, [](const BufferBound &b) { return is32Or64(b.compare); });
  if (!shadowModule.empty() && any && !known)
    recompute(index, inputs, result);
  return result;
}

/// Fresh inputs for the first launch of each kernel, and for the others where their buffers are not too large together.
bool GpuCases::getsFreshInputs(unsigned index) const {
  uint64_t bytes = 0;
  bool first = true;
  for (unsigned i = 0; i <= index; ++i) {
    bytes += bytesOf(workload.launches[i]);
    first &= i == index || workload.launches[i].kernel != workload.launches[index].kernel;
  }
  return first || bytes <= mostFreshBytes;
}

llvm::Expected<std::vector<gpu::CaseRequest>> GpuCases::casesOf(unsigned index, FreshIntegers integers) {
  const LaunchImage &launch = workload.launches[index];
  std::vector<gpu::CaseRequest> result;
  for (unsigned input = 0; input <= (getsFreshInputs(index) ? options.freshInputs : 0); ++input) {
    if (options.cancel && *options.cancel)
      return makeError("it was stopped");
    gpu::CaseRequest c;
    c.launch = index;
    c.name = (input ? "random input " + std::to_string(input) + " of launch " : std::string("captured launch ")) +
             std::to_string(launch.sequence);
    if (input) {
      std::string folder = directory + "/launch" + std::to_string(index); // their names tell only the buffer
      llvm::sys::fs::create_directory(folder);
      auto fresh = freshInputs(workload, launch, options.seed + input, integers, folder);
      if (!fresh)
        return fresh.takeError();
      if (fresh->empty())
        continue;
      c.inputs = std::move(*fresh);
    }
    std::string key = std::to_string(index);
    for (const auto &[buffer, file] : c.inputs)
      key += "," + std::to_string(buffer) + ":" + file;
    std::unique_lock lock(mutex);
    auto known = this->known.find(key);
    if (known == this->known.end()) {
      lock.unlock();
      std::vector<BufferBound> computed = bounds(index, c.inputs);
      lock.lock();
      known = this->known.emplace(key, std::move(computed)).first;
    }
    c.bounds = known->second;
    result.push_back(std::move(c));
  }
  return result;
}

llvm::Expected<std::vector<gpu::CaseRequest>> GpuCases::ofAllLaunches(FreshIntegers integers) {
  std::vector<llvm::Expected<std::vector<gpu::CaseRequest>>> made;
  for (size_t i = 0; i < workload.launches.size(); ++i)
    made.emplace_back(std::vector<gpu::CaseRequest>());
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency());
  for (unsigned i = 0; i < workload.launches.size(); ++i)
    threads.async([&, i] { made[i] = casesOf(i, integers); });
  threads.wait();
  std::vector<gpu::CaseRequest> result;
  llvm::Error failures = llvm::Error::success();
  for (auto &own : made)
    if (own)
      result.insert(result.end(), own->begin(), own->end());
    else
      failures = llvm::joinErrors(std::move(failures), own.takeError());
  if (failures)
    return std::move(failures);
  return result;
}
