//===- Memory.h - the emulated GPU's memory ---------------------*- C++ -*-===//
//
// Every allocation lives in one big reserved range of addresses at a fixed place, so that addresses repeat from run to
// run and a replay can rebuild them. Allocations are 256-byte aligned, far apart (the first ones; at least 256 unused
// bytes), filled with a poison pattern, and their addresses are never used again: a wild index or a use after free is
// seen for what it is.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_MEMORY_H
#define OPTIML_LIB_EMULATOR_RUNTIME_MEMORY_H

#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/CopyRecord.h"
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace optiml::emu {

struct RaceCell;
struct TwinCell;

enum class MemoryKind : uint8_t { Device, Managed, Host, Registered, Symbol, Heap };

/// Bytes that fresh memory holds; with envOtherFill and envOtherMemory others. A large negative number as a float and
/// as an integer, or a large positive one.
constexpr unsigned char poisonByte = 0xCC, otherByte = 0x7F;
/// Of shared memory.
unsigned char freshByte();
constexpr uint64_t redZone = 256;

/// Twins of the numbers in an allocation. Reserved at first use; most of it may never be touched.
struct Twins {
  TwinCell *cells = nullptr;
  uint8_t *used = nullptr; ///< for each chunk of cells, whether one of it was written
  static constexpr uint64_t chunk = 128;
};

/// One allocation, registered host range or device variable. Never deleted: a freed one explains later accesses.
struct Allocation {
  uint64_t address = 0, bytes = 0;
  MemoryKind kind = MemoryKind::Device;
  bool constant = false; ///< __constant__
  bool fixed = false;    ///< VariableFixed
  std::atomic<bool> freed{false};
  unsigned number = 0;                             ///< counts allocations of the program, from 1
  const char *origin = "";                         ///< the call that made it, e.g. "cudaMalloc"
  std::string symbol;                              ///< mangled name of a variable
  std::string initial;                             ///< a variable's bytes when the program started
  unsigned flags = 0;                              ///< of cudaHostAlloc
  const char *lastKernel = nullptr;                ///< that had it as an argument (copy log)
  CopyRecord::Element element = CopyRecord::Other; ///< by that kernel's signature
  bool fromHost = false;                           ///< written by the host since the last kernel
  RaceCell *races = nullptr;                       ///< ModeVerify, reserved at first use
  /// ModeShadow: a cell for every two bytes, for numbers of 16 bits, and for every four.
  Twins twins2, twins4;
  std::atomic<uint64_t> touched{0}; ///< bytes up to the last one that was used (Settings::touchedFile)
  /// The cells for numbers of `size` bytes, and how many bytes lie between two of them.
  Twins &twinsOf(uint32_t size) { return size == 2 ? twins2 : twins4; }
  const Twins &twinsOf(uint32_t size) const { return size == 2 ? twins2 : twins4; }
  static uint32_t twinUnit(uint32_t size) { return size == 2 ? 2 : 4; }
  uint64_t end() const { return address + bytes; }
  bool contains(uint64_t a, uint64_t n) const { return a >= address && n <= bytes && a - address <= bytes - n; }
  /// "the 4096-byte allocation from cudaMalloc #3", "variable 'table' (64 bytes)".
  std::string describe() const;
};

/// The live allocations at one moment, sorted by address; read without a lock while a kernel runs.
using RangeTable = std::vector<Allocation *>;

class Memory {
public:
  static Memory &get();

  /// Null when the emulated GPU has no room. `bytes` > 0.
  Allocation *allocate(uint64_t bytes, MemoryKind kind, const char *origin, uint64_t alignment = 256);
  /// Frees the allocation that starts at `address`; null when there is none (or it is of no allocated kind).
  Allocation *release(uint64_t address);
  /// Makes [address, address + bytes) an allocation again (replay). On failure returns null and says why.
  Allocation *restore(uint64_t address, uint64_t bytes, MemoryKind kind, std::string &error);
  Allocation *addRegistered(void *host, uint64_t bytes, unsigned flags);
  Allocation *addSymbol(void *address, uint64_t bytes, const std::string &symbol, VariableKind kind);

  /// The live allocation that contains the address, or null.
  Allocation *find(uint64_t address);
  /// Like find, in a table; no lock.
  static Allocation *findIn(const RangeTable &table, uint64_t address);
  /// The allocation (freed ones too) that contains or is nearest to the address, or null when none is near.
  Allocation *nearest(uint64_t address);
  std::shared_ptr<const RangeTable> liveTable();

  /// Writes the file that envTouched names.
  void writeTouched(const std::string &file);

  uint64_t liveBytes() const { return live; }
  uint64_t totalBytes() const { return limit; }
  bool inArena(uint64_t address) const { return address >= base && address < base + reserved; }

private:
  Memory();
  bool commit(uint64_t begin, uint64_t end);
  Allocation *insert(std::unique_ptr<Allocation> allocation);

  std::mutex mutex;
  uint64_t base = 0, reserved = 0, top = 0, committed = 0;
  uint64_t live = 0, limit = 0;
  unsigned counter = 0;
  std::map<uint64_t, std::unique_ptr<Allocation>> byAddress;
  std::vector<std::unique_ptr<Allocation>> retired; ///< replaced entries (a host range registered twice)
  std::shared_ptr<const RangeTable> table;
};

/// Notes that bytes up to `end` of the allocation are used, for the file that envTouched names.
void noteTouched(Allocation &allocation, uint64_t end);
/// For a range that need not lie in an allocation.
void noteTouched(const void *address, uint64_t bytes);

/// Reserves zeroed address space that costs memory only where it is touched.
void *reserveZeroed(uint64_t bytes);

} // namespace optiml::emu

#endif
