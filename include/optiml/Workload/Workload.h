//===- Workload.h - captured kernel launches --------------------*- C++ -*-===//
//
// What a program's kernels are run on: launches with their geometry, scalars and buffers before and after. Captured by
// the emulator's runtime (or on a GPU), replayed on variants. On disk: a folder with workload.json and raw blobs; the
// format is in docs/formats.md. Needs no LLVM, so that the runtime can use it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_WORKLOAD_WORKLOAD_H
#define OPTIML_WORKLOAD_WORKLOAD_H

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml {

/// One device allocation (or __device__/__constant__ variable) as a launch found and left it.
struct BufferImage {
  uint64_t address = 0; ///< where it was in the captured program; pointers inside buffers refer to it
  uint64_t bytes = 0;
  std::string symbol;        ///< mangled name of the variable; empty for an allocation
  bool constant = false;     ///< __constant__
  bool initial = false;      ///< a variable that still held what the module gives it: a replay leaves it alone
  std::string before, after; ///< blob file names, relative to the workload's folder; equal when unchanged
  /// The type that the launch's kernel takes its elements for, where the kernel's symbol does not tell: "float" behind
  /// a pointer in a structure, and of a variable. Empty: not known; "?": more than one.
  std::string element;
};

/// One kernel argument.
struct ArgumentImage {
  std::string bytes;      ///< raw value, little endian
  bool isPointer = false; ///< an 8-byte device pointer, or null
  int buffer = -1;        ///< index into buffers, -1 when it points to none
  uint64_t offset = 0;    ///< into that buffer
};

struct LaunchImage {
  std::string kernel; ///< mangled
  std::string name;   ///< demangled
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t sharedBytes = 0; ///< dynamic
  std::vector<ArgumentImage> arguments;
  std::vector<BufferImage> buffers; ///< every live allocation and symbol the kernel may reach
  std::string launchClass;          ///< equal for launches of equal kernel, geometry and size class
  double weight = 1;                ///< launches of the program that this one stands for
  uint64_t sequence = 0;            ///< its number among the program's launches
};

/// Of all its blocks.
uint64_t threadsOf(const LaunchImage &launch);
/// Of all its buffers.
uint64_t bytesOf(const LaunchImage &launch);

struct Workload {
  std::string directory;
  std::vector<std::string> programArguments;
  std::vector<LaunchImage> launches;
  uint64_t totalLaunches = 0;
  std::vector<std::string> leftOut; ///< launches not kept, and why (limits)
  /// By kernel (a mangled name): the arguments that not all launches of the program have alike, those included that are
  /// not kept.
  std::map<std::string, std::set<unsigned>> differing;

  /// Reads directory/workload.json. On failure returns false and says why in `error`.
  static bool read(const std::string &directory, Workload &into, std::string &error);
  /// Writes directory/workload.json (blobs are written by whoever captured).
  bool write(std::string &error) const;
};

/// Which launches are the kernel's (a mangled name), by number, and how many of the program's each stands for.
std::map<size_t, double> launchWeights(const Workload &workload, const std::string &kernel);

/// Of launches that do the same with the same contents, the first stands for all: repetitions, as a benchmark makes
/// them.
void dropRepeats(Workload &workload);

} // namespace optiml

#endif
