//===- Cases.cpp - does a variant compute the same on the GPU? ------------===//
#include "Cases.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

using namespace optiml;
using namespace optiml::gpu;

// Float results whose rounding is not known may differ by this much, relative to the typical magnitude of their buffer:
// a sum of some thousand terms in another order.
static constexpr double unknownFloat = 0x1p-16, unknownDouble = 0x1p-40;

const BufferImage &Cases::image(const DeviceCase &c, unsigned buffer) const {
  return launches.launches()[c.request.launch].image->buffers[buffer];
}

CUdeviceptr Cases::uploadFile(const std::string &path, uint64_t bytes) {
  std::unique_ptr<char[]> data(new char[bytes]);
  std::string error;
  if (!readBlob("", path, data.get(), bytes, error)) {
    device.fail(error);
    return 0;
  }
  launches.memory().patch(data.get(), bytes);
  CUdeviceptr at = own(device.allocate(bytes, "no room for inputs"));
  return at && device.upload(at, data.get(), bytes) ? at : 0;
}

CUdeviceptr Cases::own(CUdeviceptr at) {
  if (at)
    owned.insert(at);
  return at;
}

void Cases::forget() {
  for (CUdeviceptr at : owned)
    device.cu.cuMemFree(at);
  owned.clear();
}

CUdeviceptr Cases::copyOf(CUdeviceptr from, uint64_t bytes) {
  CUdeviceptr at = own(device.allocate(bytes, "no room for reference results"));
  return at && device.copy(at, from, bytes) ? at : 0;
}

bool Cases::restore(const DeviceCase &c, const Run &run, bool all) {
  for (unsigned i = 0; i < c.buffers.size(); ++i) {
    const DeviceCase::Buffer &b = c.buffers[i];
    if (!b.present || (!all && !b.changed))
      continue;
    const BufferImage &info = image(c, i);
    if (info.initial && !b.changed && !c.request.inputs.count(i))
      continue; // the module's own contents; they may hold addresses
    CUdeviceptr to = launches.address(run, i);
    if (to && !device.copy(to, b.input, info.bytes))
      return false;
  }
  if (!all)
    return true;
  for (const auto &[at, bytes] : run.launch->redZones)
    if (!device.fill(at, redZonePattern, bytes))
      return false;
  for (size_t i = 0; i < run.scratch.size(); ++i)
    if (!device.fill(run.scratch[i], 0xff, run.scratchBytes[i]))
      return false;
  return true;
}

bool Cases::runOnce(const DeviceCase &c, const Run &run, double seconds, Outcome &outcome) {
  outcome = {};
  const auto begin = std::chrono::steady_clock::now();
  if (!restore(c, run, true) || !launches.enqueue(run, outcome.failure)) {
    if (outcome.failure == Failure::None)
      outcome.failure = Failure::Runtime;
    outcome.why = device.error;
    return false;
  }
  switch (device.wait(seconds)) {
  case Device::Wait::Done:
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return true;
  case Device::Wait::TimedOut:
    outcome.failure = Failure::Timeout;
    outcome.why = device.error + ", on " + c.request.name;
    return false;
  case Device::Wait::Failed:
    outcome.failure = Failure::Runtime;
    outcome.why = device.error + ", on " + c.request.name;
    return false;
  }
  return false;
}

bool Cases::enqueueBuffer(const DeviceCase &c, const Run &run, unsigned i, unsigned place) {
  const DeviceCase::Buffer &b = c.buffers[i];
  const BufferImage &info = image(c, i);
  CUdeviceptr at = b.present && !b.unstable ? launches.address(run, i) : 0;
  if (!at)
    return true;
  if (!b.changed)
    return device.compareBits(at, b.expected, info.bytes, place);
  const bool equal = b.bound.relative > 0 && b.kinds
                         ? device.compareRecords(at, b.expected, info.bytes, b.kinds, b.words, b.bound.relative,
                                                 b.bound.typical, place)
                         : device.compareNumbers(b.bound.relative > 0 ? b.bound.compare : Compare::Bits, at, b.expected,
                                                 info.bytes, b.bound.relative, b.bound.typical, place);
  return equal && device.checkCells(at, b.expected, b.cells, b.cellCount, place);
}

bool Cases::enqueueComparison(const DeviceCase &c, const Run &run, unsigned place) {
  for (unsigned i = 0; i < c.buffers.size(); ++i)
    if (c.buffers[i].changed && !enqueueBuffer(c, run, i, place))
      return false;
  return true;
}

/// The device failed.
Outcome Cases::broken() const {
  Outcome outcome;
  outcome.failure = Failure::Runtime;
  outcome.why = device.error;
  return outcome;
}

Outcome Cases::check(const DeviceCase &c, const Run &run, double seconds) {
  Outcome outcome;
  if (!runOnce(c, run, seconds, outcome))
    return outcome;
  unsigned n = std::min<unsigned>(unsigned(c.buffers.size()), Device::counters - 1);
  if (!device.resetCounters(n + 1))
    return broken();
  for (unsigned i = 0; i < c.buffers.size(); ++i) // more buffers than counters share the last
    if (!enqueueBuffer(c, run, i, std::min(i, n - 1)))
      return broken();
  std::vector<Place> places(n + 1);
  for (const auto &[at, bytes] : run.launch->redZones)
    if (!device.checkPattern(at, bytes, redZonePattern, n))
      return broken();
  if (!device.finish() || !device.readCounters(places.data(), n + 1))
    return broken();
  for (unsigned i = 0; i < n && outcome.difference.empty(); ++i)
    if (places[i] != nowhere)
      outcome.difference = describe(c, run, i, places[i]);
  if (outcome.difference.empty() && places[n] != nowhere)
    outcome.difference = "kernel " + run.launch->kernelName() +
                         " writes outside of its buffers (the memory beside them changed), on " + c.request.name;
  return outcome;
}

Outcome Cases::repeat(const DeviceCase &c, const Run &run, double seconds) {
  Outcome outcome;
  std::vector<unsigned> compared;
  uint64_t slot = 0;
  std::vector<CUdeviceptr> kept;
  for (unsigned i = 0; i < c.buffers.size() && compared.size() < Device::counters; ++i) {
    if (!c.buffers[i].changed || !c.buffers[i].present)
      continue;
    uint64_t bytes = image(c, i).bytes;
    CUdeviceptr &memory = firstRun[bytes * 64 + slot++ % 64];
    if (!memory && !(memory = device.allocate(bytes, "no room to compare two runs")))
      return broken();
    if (!device.copy(memory, launches.address(run, i), bytes))
      return broken();
    compared.push_back(i);
    kept.push_back(memory);
  }
  if (!runOnce(c, run, seconds, outcome))
    return outcome;
  if (!device.resetCounters(unsigned(std::max<size_t>(1, compared.size()))))
    return broken();
  for (unsigned k = 0; k < compared.size(); ++k)
    if (!device.compareBits(launches.address(run, compared[k]), kept[k], image(c, compared[k]).bytes, k))
      return broken();
  std::vector<Place> places(compared.size());
  if (!device.finish() || !device.readCounters(places.data(), unsigned(places.size())))
    return broken();
  for (unsigned k = 0; k < compared.size() && outcome.difference.empty(); ++k)
    if (places[k] != nowhere)
      outcome.difference = "two runs of kernel " + run.launch->kernelName() + " differ in " +
                           run.launch->bufferName(compared[k]) + " at byte " + std::to_string(places[k]) +
                           ": its results vary from run to run (a race), on " + c.request.name;
  return outcome;
}

bool Cases::snapshot(DeviceCase &c, const Run &run) {
  unsigned n = std::min<unsigned>(unsigned(c.buffers.size()), Device::counters);
  if (!device.resetCounters(std::max(1u, n)))
    return false;
  for (unsigned i = 0; i < n; ++i)
    if (c.buffers[i].present && !device.compareBits(launches.address(run, i), c.buffers[i].input, image(c, i).bytes, i))
      return false;
  std::vector<Place> places(n);
  if (!device.finish() || !device.readCounters(places.data(), n))
    return false;
  for (unsigned i = 0; i < c.buffers.size(); ++i) {
    DeviceCase::Buffer &b = c.buffers[i];
    b.expected = b.input;
    b.changed = b.present && (i >= n || places[i] != nowhere);
    if (b.changed && !(b.expected = copyOf(launches.address(run, i), image(c, i).bytes)))
      return false;
  }
  return device.finish();
}

double optiml::gpu::limitAfter(double seconds) { return 1 + 8 * seconds; }

/// With made-up inputs a slow original runs twice: the captured ones have told what varies and what it writes.
static bool isBrief(const DeviceCase &c) { return !c.request.inputs.empty() && c.seconds > 0.05; }

/// Two more runs of the original: what differs from the first, or beyond its tolerance, cannot be asked of a variant.
bool Cases::findUnstable(DeviceCase &c, const Run &run, double limit) {
  unsigned n = std::min<unsigned>(unsigned(c.buffers.size()), Device::counters);
  std::vector<Place> places(n);
  for (int again = 0; again < 2 && !isBrief(c); ++again) {
    Outcome outcome;
    if (!runOnce(c, run, limit, outcome) || !device.resetCounters(std::max(1u, n)))
      return false;
    for (unsigned i = 0; i < n; ++i)
      if (c.buffers[i].changed &&
          !device.compareBits(launches.address(run, i), c.buffers[i].expected, image(c, i).bytes, i))
        return false;
    if (!device.finish() || !device.readCounters(places.data(), n))
      return false;
    for (unsigned i = 0; i < n; ++i) {
      if (places[i] == nowhere)
        continue;
      c.deterministic = false;
      if (c.buffers[i].bound.compare == Compare::Bits)
        c.buffers[i].unstable = true;
    }
    if (!device.resetCounters(std::max(1u, n)))
      return false;
    for (unsigned i = 0; i < n; ++i)
      if (places[i] != nowhere && !enqueueBuffer(c, run, i, i))
        return false;
    std::vector<Place> outside(n);
    if (!device.finish() || !device.readCounters(outside.data(), n))
      return false;
    for (unsigned i = 0; i < n; ++i)
      c.buffers[i].unstable |= outside[i] != nowhere;
    c.seconds = outcome.seconds;
  }
  return true;
}

/// Keeps the poison when the original gives the same on the poisoned buffer. False: the device failed.
bool Cases::tryPoison(DeviceCase &c, const Run &run, unsigned i, bool careful) {
  DeviceCase::Buffer &b = c.buffers[i];
  const BufferImage &info = image(c, i);
  ElementType type = bufferTypes(*run.launch->image)[i];
  bool floating = type.isFloating();
  bool integers = type.kind == ElementKind::Integer && type.bytes >= 4;
  if (!b.present || b.unstable || !info.symbol.empty() || info.bytes < 4 || (info.bytes & 3) ||
      pointsToConst(*run.launch->image, i) || !(floating || (integers && !careful && (b.changed || !c.changesAny()))))
    return true;
  int low = 0, high = 0;
  if (integers) {
    std::vector<int> words(info.bytes / 4);
    if (!device.download(words.data(), b.input, words.size() * 4))
      return false;
    auto [least, most] = std::minmax_element(words.begin(), words.end());
    low = *least;
    high = *most;
  }
  CUdeviceptr poisoned = copyOf(b.input, info.bytes);
  if (!poisoned || !device.poison(poisoned, info.bytes, floating, low, high))
    return false;
  std::swap(poisoned, b.input);
  Outcome outcome;
  if (!runOnce(c, run, limitAfter(c.seconds), outcome))
    return false;
  unsigned n = std::min<unsigned>(unsigned(c.buffers.size()), Device::counters - 2);
  std::vector<Place> places(n + 2);
  if (!device.resetCounters(n + 2) || !device.setCounter(n + 1, 0))
    return false;
  CUdeviceptr at = launches.address(run, i);
  for (unsigned j = 0; j < n; ++j)
    if (j != i && !enqueueBuffer(c, run, j, j))
      return false;
  if (!device.checkWritten(at, b.input, b.expected, info.bytes, n, n + 1) || !device.finish() ||
      !device.readCounters(places.data(), n + 2))
    return false;
  bool same = std::all_of(places.begin(), places.begin() + n + 1, [](Place p) { return p == nowhere; });
  if (!same || places[n + 1] == 0) {
    std::swap(poisoned, b.input);
    device.cu.cuMemFree(poisoned);
    owned.erase(poisoned);
    return true;
  }
  c.writtenBytes += 4 * places[n + 1];
  b.poisoned = b.changed = true;
  b.expected = copyOf(at, info.bytes);
  return b.expected && device.finish();
}

static std::vector<WordKind> kindsOf(const RecordLayout &layout) {
  std::vector<WordKind> kinds(layout.bytes / 4, WordKind::Bits);
  for (const RecordField &field : layout.fields)
    if (field.type.kind == ElementKind::Float && field.offset % 4 == 0)
      kinds[field.offset / 4] = WordKind::Float;
    else if (field.type.kind == ElementKind::Double && field.offset % 4 == 0) {
      kinds[field.offset / 4] = WordKind::Double;
      kinds[field.offset / 4 + 1] = WordKind::OfDouble;
    }
  return kinds;
}

/// Where the buffer holds structures.
bool Cases::setKinds(const BufferImage &info, DeviceCase::Buffer &b) {
  auto layout = recordLayout(info.element);
  if (!layout || layout->bytes % 4 || (b.bound.compare != Compare::Float && b.bound.compare != Compare::Double))
    return true;
  const std::vector<WordKind> kinds = kindsOf(*layout);
  b.words = kinds.size();
  b.kinds = own(device.allocate(kinds.size(), "no room for the layout of a structure"));
  return b.kinds && device.upload(b.kinds, kinds.data(), kinds.size());
}

bool Cases::setBounds(DeviceCase &c) {
  for (const BufferBound &bound : c.request.bounds) {
    if (bound.buffer >= c.buffers.size())
      return device.fail("a bound for buffer " + std::to_string(bound.buffer) + ", which " + c.request.name + " lacks");
    DeviceCase::Buffer &b = c.buffers[bound.buffer];
    b.bound = bound;
    if (!setKinds(image(c, bound.buffer), b))
      return false;
    if (bound.cells.empty())
      continue;
    std::ifstream in(bound.cells, std::ios::binary | std::ios::ate);
    uint64_t bytes = in ? uint64_t(in.tellg()) : 0;
    b.cellCount = bytes / sizeof(CheckedCell);
    b.cells = uploadFile(bound.cells, bytes);
    if (!b.cells)
      return false;
  }
  return true;
}

/// Where nothing was recomputed, the largest finite result stands for the buffer's typical magnitude.
static bool guessBound(Device &device, DeviceCase::Buffer &b, const BufferImage &info) {
  const uint64_t bytes = info.bytes;
  if (b.bound.compare == Compare::Bits || b.bound.typical >= 0)
    return true;
  std::string data(bytes, '\0');
  if (!device.download(data.data(), b.expected, bytes))
    return false;
  b.bound.typical = 0;
  std::vector<WordKind> kinds;
  if (b.kinds)
    kinds = kindsOf(*recordLayout(info.element));
  auto scan = [&](auto zero, auto valueOf) {
    decltype(zero) v;
    const uint64_t step = kinds.empty() ? sizeof v : 4;
    for (uint64_t i = 0; i + sizeof v <= bytes; i += step) {
      if (!kinds.empty() && kinds[i / 4 % kinds.size()] != (sizeof v == 4 ? WordKind::Float : WordKind::Double))
        continue;
      memcpy(&v, data.data() + i, sizeof v);
      if (double value = double(valueOf(v)); std::isfinite(value))
        b.bound.typical = std::max(b.bound.typical, std::fabs(value));
    }
  };
  auto same = [](auto v) { return v; };
  switch (b.bound.compare) {
  case Compare::Float:
    scan(0.0f, same);
    b.bound.relative = std::max(b.bound.relative, unknownFloat);
    break;
  case Compare::Double:
    scan(0.0, same);
    b.bound.relative = std::max(b.bound.relative, unknownDouble);
    break;
  case Compare::Half:
  case Compare::BFloat16: {
    Format16 format = b.bound.compare == Compare::Half ? Format16::Half : Format16::Brain;
    scan(uint16_t(0), [&](uint16_t v) { return valueOf16(v, format); });
    b.bound.relative = std::max(b.bound.relative, distance16);
    break;
  }
  case Compare::Bits: break;
  }
  return true;
}

std::optional<bool> Cases::staysInside(const Run &run) {
  Place place = nowhere;
  if (!device.resetCounters(1))
    return std::nullopt;
  for (const auto &[at, bytes] : run.launch->redZones)
    if (!device.checkPattern(at, bytes, redZonePattern, 0))
      return std::nullopt;
  if (!device.finish() || !device.readCounters(&place, 1))
    return std::nullopt;
  return place == nowhere;
}

bool Cases::prepare(DeviceCase &c, Module &original, bool careful, double limit, double worthwhile) {
  const DeviceLaunch &launch = launches.launches()[c.request.launch];
  if (!launch.unusable.empty()) {
    c.unusable = launch.unusable;
    return true;
  }
  Run run;
  if (!launches.planOriginal(c.request.launch, original, run)) {
    c.unusable = "the original cannot be launched again: " + device.error;
    return true;
  }
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    DeviceCase::Buffer b;
    b.present = launches.address(run, i) != 0;
    auto input = c.request.inputs.find(i);
    b.input =
        input == c.request.inputs.end() ? launch.buffers[i].captured : uploadFile(input->second, image(c, i).bytes);
    if (!b.input)
      return false;
    c.buffers.push_back(b);
  }
  if (!setBounds(c))
    return false;
  Outcome outcome;
  if (!runOnce(c, run, limit, outcome)) { // the first launch also loads code
    c.unusable = "the original fails on it: " + outcome.why;
    return !device.lost;
  }
  if (outcome.seconds > worthwhile) {
    c.unusable =
        "the original takes " + numberText(outcome.seconds, 2) + " s on it, too long to run each variant on it";
    return true;
  }
  const std::optional<bool> isInside = staysInside(run);
  if (!isInside)
    return false;
  if (!*isInside) { // as where it takes differences of random numbers as places
    c.unusable = "the original writes outside of its buffers on it";
    return true;
  }
  if (!snapshot(c, run))
    return false;
  for (unsigned i = 0; i < c.buffers.size(); ++i)
    if (c.buffers[i].changed && !guessBound(device, c.buffers[i], image(c, i)))
      return false;
  if (!findUnstable(c, run, limit))
    return false;
  if (c.deterministic && !isBrief(c))
    for (unsigned i = 0; i < c.buffers.size(); ++i)
      if (!tryPoison(c, run, i, careful))
        return false;
  bool any = false;
  for (unsigned i = 0; i < c.buffers.size(); ++i) {
    any |= c.buffers[i].changed && !c.buffers[i].unstable;
    c.changesNothing &= !c.buffers[i].changed;
    if (c.buffers[i].changed && !c.buffers[i].poisoned)
      c.writtenBytes += image(c, i).bytes / 4; // at least some of it; how much is not known
  }
  if (!any && !(c.changesNothing && c.request.inputs.empty())) // zeros so far are timed, others are compared
    c.unusable = "the original changes nothing that could be compared";
  return true;
}
