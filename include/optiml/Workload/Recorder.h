//===- Recorder.h - which launches become a workload ------------*- C++ -*-===//
//
// The part of capturing that the emulator's runtime and the library injected into GPU programs share. Launches are
// classed by kernel, geometry, sizes of scalars and buffers; of each class the first is kept and, as the others come,
// those whose number is a power of two take the remaining places, so that the kept ones spread over the run whatever
// its length. Needs no LLVM. Not thread-safe: whoever captures holds a lock from begin() to commit().
//
// For each launch:
//
//     begin(launch)            counted; false: not to be recorded
//     admit(bytes)             false: no room for its buffers
//     addBuffer(buffer, data)  each reachable buffer, by address
//     linkArguments()
//       ... the launch runs ...
//     setAfter(i, data)        each buffer again
//     commit(), write()        or abandon(why) at any point since begin()
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_WORKLOAD_RECORDER_H
#define OPTIML_WORKLOAD_RECORDER_H

#include "optiml/Workload/Workload.h"
#include <chrono>
#include <map>
#include <set>

namespace optiml {

struct CaptureLimits {
  unsigned perClass = 2;                 ///< launches kept of one class; 0: all
  uint64_t maxBytes = uint64_t(1) << 30; ///< of all contents
  unsigned maxLaunches = 256;
  uint64_t moreBytes = uint64_t(1) << 30; ///< of all contents, where the launch's kernel has one already
  uint64_t skip = 0;                      ///< of each kernel, so many launches are only counted
  /// Recording takes this part of the time so far at most, but for the first launch of each class; 0: no limit.
  double timeShare = 0;
};

/// The value of an environment variable: a whole decimal number with an optional K, M or G. A bad one is reported on
/// stderr and ignored.
uint64_t environmentNumber(const char *name, uint64_t fallback);

/// As the environment has it (OPTIML_CAPTURE_PER_CLASS and the like, RuntimeSettings.h).
CaptureLimits environmentLimits(CaptureLimits otherwise);

/// The path, in which "%h" is this host's name, "%r" the process's rank under MPI or Slurm (0 elsewhere), "%p" its
/// number, and "%%" a "%": each process of a program writes something of its own.
std::string pathOfProcess(const std::string &pattern);
/// The pattern that is this path for every process.
inline std::string patternOfPath(const std::string &path) {
  std::string pattern;
  for (char c : path)
    pattern += c == '%' ? "%%" : std::string(1, c);
  return pattern;
}

/// The launch class (LaunchImage::launchClass) from kernel, geometry and arguments. `bufferBytes` holds for each
/// argument the size of the allocation it points into, 0 for none.
std::string launchClassOf(const LaunchImage &launch, const std::vector<uint64_t> &bufferBytes);

class Recorder {
public:
  /// Records into a folder, which is created; the program's arguments are this process's. False, with a message on
  /// stderr, when it cannot.
  bool open(const std::string &directory, const CaptureLimits &limits);
  /// Whether it still records: a blob that could not be written ends it.
  bool good() const { return on; }

  /// Counts a launch and gives it its number. True when it is to be recorded, as far as its class and the number of
  /// launches go. `launch` has everything but buffers, sequence and weight.
  bool begin(LaunchImage launch);
  /// Counts a launch that nobody wants recorded.
  void skip() { ++workload.totalLaunches; }
  /// Whether buffers of so many bytes in all fit; otherwise the launch is left out.
  bool admit(uint64_t bufferBytes);
  /// Bytes of buffers that admit() would take.
  uint64_t room() const { return stored < limits.maxBytes ? (limits.maxBytes - stored) / 2 : 0; }
  /// Stores the content that the launch finds.
  bool addBuffer(BufferImage buffer, const void *data);
  /// Fills in which buffer each pointer argument points into. A buffer's end counts, unless the next begins there.
  void linkArguments();
  /// Stores the content that the launch left.
  bool setAfter(size_t buffer, const void *data);
  void commit();
  /// Forgets the launch that was begun. The reason goes to `leftOut`, once a kernel.
  void abandon(const std::string &why);
  /// Adds to `leftOut` unless it is there.
  void note(const std::string &message);
  /// Writes workload.json with the present weights.
  bool write();

  const LaunchImage &launch() const { return current; } ///< that was begun
  const std::vector<LaunchImage> &kept() const { return workload.launches; }
  size_t kernels() const { return seen.size(); } ///< that were launched

private:
  struct LaunchClass {
    uint64_t count = 0;
    std::vector<uint64_t> kept; ///< sequence numbers, oldest first
  };
  /// Says why, once a kernel and kind of reason: its launches may be thousands.
  void leaveOut(const std::string &why, const std::string &kind);
  bool wanted(const LaunchClass &c) const;
  bool affordsAnother() const;
  void stopClock();
  /// Notes which arguments differ from those of the kernel's first launch.
  void compareArguments();
  bool replaces(const LaunchClass &c) const { return limits.perClass && c.kept.size() >= limits.perClass; }
  bool store(const void *data, uint64_t bytes, std::string &name);
  void release(const LaunchImage &launch);
  void release(const std::string &blob);
  void drop(uint64_t sequence);
  void stop(const std::string &why);
  std::string where() const;

  bool on = false;
  CaptureLimits limits;
  Workload workload;
  std::map<std::string, LaunchClass> classes;
  std::map<std::string, uint64_t> seen;                           ///< launches, by kernel
  std::map<std::string, std::vector<std::string>> firstArguments; ///< of its first launch, by kernel
  std::map<std::string, unsigned> uses;                           ///< of blobs
  std::map<std::string, uint64_t> sizes;
  std::set<std::string> noted;
  uint64_t stored = 0;
  LaunchImage current;
  using Clock = std::chrono::steady_clock;
  Clock::time_point opened, begun; ///< the folder, and the recording of a launch
  Clock::duration recording{};     ///< of all launches so far
};

} // namespace optiml

#endif
