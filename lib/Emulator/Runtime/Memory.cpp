//===- Memory.cpp - the emulated GPU's memory -----------------------------===//
#include "Memory.h"
#include "Settings.h"
#include <algorithm>
#include <cstring>
#include <cxxabi.h>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

using namespace optiml::emu;

// Above AddressSanitizer's shadow and far below where Linux puts programs and libraries.
static constexpr uint64_t preferredBase = 0x200000000000;
static constexpr uint64_t arenaBytes = uint64_t(8) << 40;
static constexpr uint64_t commitStep = uint64_t(4) << 20;
// A wild index of one buffer must not end in another, where no check could tell. Allocations lie this far apart, the
// first ones at least: each costs two mappings, of which Linux gives a process 65,530.
static constexpr uint64_t farApart = uint64_t(1) << 30;
static constexpr unsigned mostFarApart = 1024;

static uint64_t pageDown(uint64_t a) { return a & ~uint64_t(4095); }
static uint64_t pageUp(uint64_t a) { return pageDown(a + 4095); }

unsigned char optiml::emu::freshByte() { return settings().otherFill ? otherByte : poisonByte; }

// Pages of 2 MB are cleared at once. Where little of a large mapping is used, that would be more than is needed.
static constexpr uint64_t hugePage = uint64_t(2) << 20, mostInHugePages = uint64_t(256) << 20;

void *optiml::emu::reserveZeroed(uint64_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return nullptr;
  if (bytes >= hugePage && bytes <= mostInHugePages)
    madvise(p, bytes, MADV_HUGEPAGE); // where it cannot be, it is as it was
  return p;
}

std::string Allocation::describe() const {
  if (kind == MemoryKind::Symbol) {
    int status = 0;
    char *demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    std::string name = status == 0 ? demangled : symbol;
    free(demangled);
    return "variable '" + name + "' (" + std::to_string(bytes) + " bytes)";
  }
  return "the " + std::to_string(bytes) + "-byte allocation from " + origin +
         (number ? " #" + std::to_string(number) : std::string());
}

Memory &Memory::get() {
  static Memory *memory = new Memory; // never destroyed: the program's own destructors may still free memory
  return *memory;
}

Memory::Memory() {
  void *p = MAP_FAILED;
  for (uint64_t want : {preferredBase, uint64_t(0)}) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (want ? MAP_FIXED_NOREPLACE : 0);
    for (uint64_t size = arenaBytes; p == MAP_FAILED && size >= (uint64_t(1) << 30); size /= 2) {
      p = mmap(reinterpret_cast<void *>(want), size, PROT_NONE, flags, -1, 0);
      reserved = size;
    }
  }
  if (p == MAP_FAILED) {
    reserved = 0;
    return;
  }
  base = reinterpret_cast<uint64_t>(p);
  top = committed = base;
  uint64_t host = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  limit = settings().memoryBytes ? settings().memoryBytes : host / 2;
}

bool Memory::commit(uint64_t begin, uint64_t end) {
  begin = pageDown(begin);
  end = pageUp(end);
  if (begin >= end)
    return true;
  return mprotect(reinterpret_cast<void *>(begin), end - begin, PROT_READ | PROT_WRITE) == 0;
}

static std::unique_ptr<Allocation> makeAllocation(uint64_t address, uint64_t bytes, MemoryKind kind,
                                                  const char *origin) {
  auto allocation = std::make_unique<Allocation>();
  allocation->address = address;
  allocation->bytes = bytes;
  allocation->kind = kind;
  allocation->origin = origin;
  return allocation;
}

Allocation *Memory::insert(std::unique_ptr<Allocation> allocation) {
  Allocation *result = allocation.get();
  std::unique_ptr<Allocation> &slot = byAddress[result->address];
  if (slot)
    retired.push_back(std::move(slot));
  slot = std::move(allocation);
  table.reset();
  return result;
}

Allocation *Memory::allocate(uint64_t bytes, MemoryKind kind, const char *origin, uint64_t alignment) {
  std::lock_guard lock(mutex);
  if (bytes > limit || live + bytes > limit)
    return nullptr;
  constexpr uint64_t large = 1 << 16;
  if (bytes >= large) // at a page, as CUDA does, so that a replay can map what was recorded
    alignment = std::max(alignment, pageUp(1));
  bool isFar = kind != MemoryKind::Heap && counter < mostFarApart && reserved == arenaBytes;
  uint64_t address = (top + (isFar ? farApart : redZone) + alignment - 1) & ~(alignment - 1);
  if (kind == MemoryKind::Device && (!settings().shifted || settings().shifted == counter + 1))
    address += settings().shift;
  uint64_t end = address + bytes + redZone;
  if (end > base + reserved)
    return nullptr;
  if (end > committed) {
    uint64_t until = std::min(pageUp(isFar ? end : end + commitStep), base + reserved);
    if (!commit(isFar ? address - redZone : committed, until))
      return nullptr;
    committed = until;
  }
  top = address + bytes;
  live += bytes;
  memset(reinterpret_cast<void *>(address), settings().otherMemory ? otherByte : poisonByte, bytes);
  auto a = makeAllocation(address, bytes, kind, origin);
  a->number = kind == MemoryKind::Heap ? 0 : ++counter;
  a->fromHost = kind == MemoryKind::Managed || kind == MemoryKind::Host;
  return insert(std::move(a));
}

Allocation *Memory::release(uint64_t address) {
  std::lock_guard lock(mutex);
  auto it = byAddress.find(address);
  if (it == byAddress.end() || it->second->freed || it->second->kind == MemoryKind::Symbol)
    return nullptr;
  Allocation *a = it->second.get();
  a->freed = true;
  table.reset();
  if (a->kind == MemoryKind::Registered)
    return a;
  live -= a->bytes;
  uint64_t begin = pageUp(a->address), end = pageDown(a->end());
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  return a;
}

Allocation *Memory::restore(uint64_t address, uint64_t bytes, MemoryKind kind, std::string &error) {
  std::lock_guard lock(mutex);
  auto fail = [&](const std::string &why) -> Allocation * {
    error = "cannot rebuild the buffer of " + std::to_string(bytes) + " bytes at its captured address: " + why;
    return nullptr;
  };
  if (!bytes || address + bytes < address || (address >> 47) != 0 || ((address + bytes) >> 47) != 0)
    return fail("the address range is not one a program can have");
  auto next = byAddress.upper_bound(address);
  if (next != byAddress.end() && next->first < address + bytes)
    return fail("it overlaps another buffer");
  if (next != byAddress.begin() && std::prev(next)->second->end() > address)
    return fail("it overlaps another buffer");
  if (inArena(address) && address + bytes <= base + reserved) {
    if (!commit(address, address + bytes))
      return fail(strerror(errno));
    top = std::max(top, address + bytes);
    committed = std::max(committed, pageUp(address + bytes));
  } else {
    // Outside the arena. Neighbours that were restored before may have mapped the first page, and the last one.
    uint64_t begin = pageDown(address), end = pageUp(address + bytes);
    if (next != byAddress.begin())
      begin = std::max(begin, std::min(end, pageUp(std::prev(next)->second->end())));
    if (next != byAddress.end())
      end = std::max(begin, std::min(end, pageDown(next->first)));
    void *p = begin == end ? nullptr
                           : mmap(reinterpret_cast<void *>(begin), end - begin, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED)
      return fail(strerror(errno));
  }
  live += bytes;
  auto a = makeAllocation(address, bytes, kind, "cudaMalloc");
  a->number = ++counter;
  return insert(std::move(a));
}

Allocation *Memory::addRegistered(void *host, uint64_t bytes, unsigned flags) {
  std::lock_guard lock(mutex);
  auto a = makeAllocation(reinterpret_cast<uint64_t>(host), bytes, MemoryKind::Registered, "cudaHostRegister");
  a->flags = flags;
  return insert(std::move(a));
}

Allocation *Memory::addSymbol(void *address, uint64_t bytes, const std::string &symbol, VariableKind variable) {
  std::lock_guard lock(mutex);
  auto a = makeAllocation(reinterpret_cast<uint64_t>(address), bytes, MemoryKind::Symbol, /*origin=*/"");
  a->symbol = symbol;
  a->constant = variable == VariableConstant;
  a->fixed = variable == VariableFixed;
  a->initial.assign(static_cast<const char *>(address), bytes);
  return insert(std::move(a));
}

Allocation *Memory::find(uint64_t address) {
  std::lock_guard lock(mutex);
  auto it = byAddress.upper_bound(address);
  if (it == byAddress.begin())
    return nullptr;
  Allocation *a = std::prev(it)->second.get();
  return !a->freed && a->contains(address, 1) ? a : nullptr;
}

Allocation *Memory::findIn(const RangeTable &table, uint64_t address) {
  auto it = std::upper_bound(table.begin(), table.end(), address,
                             [](uint64_t value, const Allocation *a) { return value < a->address; });
  if (it == table.begin())
    return nullptr;
  Allocation *a = *std::prev(it);
  return a->contains(address, 1) && !a->freed ? a : nullptr;
}

Allocation *Memory::nearest(uint64_t address) {
  std::lock_guard lock(mutex);
  constexpr uint64_t near = uint64_t(1) << 32;
  auto it = byAddress.upper_bound(address);
  Allocation *above = it == byAddress.end() ? nullptr : it->second.get();
  Allocation *below = it == byAddress.begin() ? nullptr : std::prev(it)->second.get();
  if (below && below->contains(address, 1))
    return below;
  uint64_t up = above ? above->address - address : UINT64_MAX, down = below ? address - below->end() : UINT64_MAX;
  if (std::min(up, down) > near)
    return nullptr;
  return down <= up ? below : above;
}

std::shared_ptr<const RangeTable> Memory::liveTable() {
  std::lock_guard lock(mutex);
  if (!table) {
    auto fresh = std::make_shared<RangeTable>();
    for (auto &[address, a] : byAddress)
      if (!a->freed)
        fresh->push_back(a.get());
    table = std::move(fresh);
  }
  return table;
}

void Memory::writeTouched(const std::string &file) {
  std::lock_guard lock(mutex);
  std::map<unsigned, uint64_t> byNumber;
  for (const auto &[address, a] : byAddress)
    if (a->number)
      byNumber[a->number] = a->touched;
  std::ofstream out(file);
  for (auto [number, bytes] : byNumber)
    out << number << ' ' << bytes << '\n';
}

void optiml::emu::noteTouched(Allocation &allocation, uint64_t end) {
  uint64_t before = allocation.touched;
  while (before < end && !allocation.touched.compare_exchange_weak(before, end))
    ;
  static const bool writes [[maybe_unused]] = [] {
    return !settings().touchedFile.empty() && !atexit([] { Memory::get().writeTouched(settings().touchedFile); });
  }();
}

void optiml::emu::noteTouched(const void *address, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (!settings().notesTouched)
    return;
  if (Allocation *a = Memory::get().find(begin))
    noteTouched(*a, begin + bytes - a->address);
}
