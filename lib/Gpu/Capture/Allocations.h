//===- Allocations.h - the program's device memory --------------*- C++ -*-===//
//
// The ranges of memory that kernels can reach, kept from the program's allocations. Needs no driver.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_CAPTURE_ALLOCATIONS_H
#define OPTIML_LIB_GPU_CAPTURE_ALLOCATIONS_H

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace optiml::gpu {

struct MemoryRange {
  uint64_t begin = 0, bytes = 0;
  int variable = -1; ///< its number among a launch's variables, or -1
  uint64_t end() const { return begin + bytes; }
  bool contains(uint64_t address) const { return address - begin < bytes; }
  bool operator==(const MemoryRange &) const = default;
};

/// The live ranges at one moment, for looking up very many addresses.
class RangeIndex {
public:
  /// Ranges that overlap become one; one that overlaps a variable is dropped for it.
  explicit RangeIndex(std::vector<MemoryRange> ranges);
  /// The index of the range that contains the address, or -1.
  int find(uint64_t address) const { return address - lowest < span ? search(address) : -1; }
  const std::vector<MemoryRange> &all() const { return ranges; }

private:
  int search(uint64_t address) const;
  std::vector<MemoryRange> ranges; ///< by address
  uint64_t lowest = 0, span = 0;
};

/// The table of live allocations. Any thread may use it.
class Allocations {
public:
  /// `owner` is the context that frees it when it goes.
  void add(uint64_t begin, uint64_t bytes, const void *owner = nullptr);
  /// Physical memory mapped at an address. Mappings that touch count as one range: an allocator that grows maps piece
  /// after piece behind another, and its buffers lie across them.
  void map(uint64_t begin, uint64_t bytes);
  /// The allocation that starts there; unknown ones are ignored.
  void remove(uint64_t begin);
  void unmap(uint64_t begin, uint64_t bytes);
  void removeOwned(const void *owner);
  bool find(uint64_t address, MemoryRange &into) const;
  std::vector<MemoryRange> all() const;

private:
  struct Entry {
    uint64_t bytes;
    bool mapped;
    const void *owner;
  };
  using Table = std::map<uint64_t, Entry>;
  void insert(uint64_t begin, const Entry &entry);
  void cut(uint64_t begin, uint64_t bytes, bool mappedOnly);

  mutable std::mutex mutex;
  Table table;
};

} // namespace optiml::gpu

#endif
