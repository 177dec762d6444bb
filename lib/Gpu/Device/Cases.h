//===- Cases.h - does a variant compute the same on the GPU? ----*- C++ -*-===//
//
// A case is a captured launch with some contents of its buffers. The original runs on it once, and its results are the
// reference. What a launch overwrites without reading is poisoned first, so that a variant that leaves an output out
// cannot pass by what was there before: whether a buffer is of that kind is found out by running the original on the
// poisoned buffer and seeing that nothing but the poison changes.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_DEVICE_CASES_H
#define OPTIML_LIB_GPU_DEVICE_CASES_H

#include "Launches.h"
#include <algorithm>
#include <optional>
#include <set>

namespace optiml::gpu {

struct DeviceCase {
  CaseRequest request;
  std::string unusable;       ///< why nothing is compared on it, or empty
  bool changesNothing = true; ///< the original does, on these inputs
  struct Buffer {
    CUdeviceptr input = 0;    ///< contents before the launch
    CUdeviceptr expected = 0; ///< after the original; equal to `input` where it changes nothing
    bool changed = false;
    bool poisoned = false;
    bool unstable = false; ///< runs of the original differ in what must be equal, or by more than is allowed
    bool present = true;   ///< a variable that the original's module lacks is left out
    BufferBound bound;
    CUdeviceptr cells = 0;
    uint64_t cellCount = 0;
    CUdeviceptr kinds = 0; ///< of structures with numbers of the bound's kind among others: a WordKind for each word
    uint64_t words = 0;    ///< in one structure
  };
  std::vector<Buffer> buffers;
  /// Not where it leaves what an earlier launch has left already, as long as nothing is poisoned.
  bool changesAny() const {
    return std::any_of(buffers.begin(), buffers.end(), [](const Buffer &b) { return b.changed; });
  }
  bool deterministic = true; ///< the original gave the same bits twice
  uint64_t writtenBytes = 0;
  double seconds = 0; ///< of the original, for time limits
};

/// What a word of a structure is, for optimlCompareRecords.
enum class WordKind : unsigned char { Bits, Float, Double, OfDouble };

/// The result of comparing one run.
struct Outcome {
  Failure failure = Failure::None; ///< the run itself went wrong
  std::string difference;          ///< empty: equal
  bool good() const { return failure == Failure::None && difference.empty(); }
  std::string why;    ///< of the failure
  double seconds = 0; ///< that setting up and running took
};

/// A run that should take so many seconds may take so many.
double limitAfter(double seconds);
/// For messages.
std::string numberText(double v, int digits);

class Cases {
public:
  Cases(Device &device, Launches &launches) : device(device), launches(launches) {}

  /// Runs the original, each time for at most `limit` seconds. False: the device failed (Device::error, Device::lost);
  /// a case that cannot be used says why. Nor is one used on which a run takes longer than `worthwhile` seconds.
  bool prepare(DeviceCase &c, Module &original, bool careful, double limit, double worthwhile);
  /// Frees what all prepared cases hold; they must not be used any more.
  void forget();

  /// Puts a case's inputs in place. `all`: every buffer and the red zones; otherwise only what the original changes.
  bool restore(const DeviceCase &c, const Run &run, bool all);
  /// Restores, runs, waits no longer than `seconds`, and compares everything.
  Outcome check(const DeviceCase &c, const Run &run, double seconds);
  /// Whether a second run gives the same bits as the first did (call after check).
  Outcome repeat(const DeviceCase &c, const Run &run, double seconds);
  /// Queues a comparison of what the original changes, into counter `place`.
  bool enqueueComparison(const DeviceCase &c, const Run &run, unsigned place);
  /// In words, after check or enqueueComparison found something in buffer `buffer` at byte `place`.
  std::string allowance(const DeviceCase::Buffer &b, uint64_t offset, double expected);
  std::string describe(const DeviceCase &c, const Run &run, unsigned buffer, Place place);

private:
  Outcome broken() const;
  bool runOnce(const DeviceCase &c, const Run &run, double seconds, Outcome &outcome);
  bool enqueueBuffer(const DeviceCase &c, const Run &run, unsigned buffer, unsigned place);
  /// Whether the run has left the memory beside its buffers as it was. Nothing: the device failed.
  std::optional<bool> staysInside(const Run &run);
  bool snapshot(DeviceCase &c, const Run &run);
  bool findUnstable(DeviceCase &c, const Run &run, double limit);
  bool tryPoison(DeviceCase &c, const Run &run, unsigned buffer, bool careful);
  bool setBounds(DeviceCase &c);
  bool setKinds(const BufferImage &info, DeviceCase::Buffer &b);
  CUdeviceptr uploadFile(const std::string &path, uint64_t bytes);
  CUdeviceptr copyOf(CUdeviceptr from, uint64_t bytes);
  CUdeviceptr own(CUdeviceptr at);
  const BufferImage &image(const DeviceCase &c, unsigned buffer) const;

  Device &device;
  Launches &launches;
  std::set<CUdeviceptr> owned;              ///< by prepared cases
  std::map<uint64_t, CUdeviceptr> firstRun; ///< by size and number: results to compare a second run with
};

} // namespace optiml::gpu

#endif
