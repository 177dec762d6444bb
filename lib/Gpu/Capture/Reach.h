//===- Reach.h - the memory a launch may touch ------------------*- C++ -*-===//
//
// From the pointers among a kernel's arguments to the buffers they reach. An 8-byte word, 8-byte aligned, whose value
// lies in a live range is taken for a pointer, in arguments and in the buffers reached so far. A number mistaken for a
// pointer merely adds a buffer, but costs time and space, and numbers are most of what buffers hold: a buffer's
// first `probeBytes` are scanned, and the rest only when they held a pointer. A table of pointers that is preceded by a
// megabyte without any is thus not followed.
//
// A range of more than `largeRange` bytes is likely a caching allocator's segment with many tensors. Of such a one only
// what lies from the smallest pointer into it (rounded down to `windowAlignment`) to its end is reached.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_CAPTURE_REACH_H
#define OPTIML_LIB_GPU_CAPTURE_REACH_H

#include "Allocations.h"
#include <functional>

namespace optiml::gpu {

constexpr uint64_t largeRange = uint64_t(64) << 20;
constexpr uint64_t windowAlignment = 512;
constexpr uint64_t probeBytes = uint64_t(1) << 20;

class Reach {
public:
  /// Copies device memory to the host; false when it cannot.
  using Reader = std::function<bool(uint64_t address, uint64_t bytes, char *into)>;
  Reach(RangeIndex index, Reader read);

  void addPointer(uint64_t address);
  /// The words of a value that starts at `offset` in a kernel's parameters.
  void addWords(const char *value, uint64_t bytes, uint64_t offset = 0);
  /// A range as a whole (variables).
  void addRange(size_t index);
  /// Follows pointers in what was added until nothing is new or more than `most` bytes are reached. False when memory
  /// could not be read.
  bool follow(uint64_t most);
  /// By address; they do not overlap.
  std::vector<MemoryRange> windows() const;
  uint64_t bytes() const { return total; }

private:
  struct State {
    uint64_t begin = UINT64_MAX;   ///< of the window; UINT64_MAX: not reached
    uint64_t scanned = UINT64_MAX; ///< begin when it was last scanned
  };
  void reach(int range, uint64_t address);
  bool scan(size_t range);
  bool scanPiece(uint64_t begin, uint64_t bytes, bool &found);

  RangeIndex index;
  Reader read;
  std::vector<State> states; ///< one a range
  std::vector<size_t> queue;
  uint64_t total = 0; ///< of the windows
  std::vector<char> buffer;
};

} // namespace optiml::gpu

#endif
