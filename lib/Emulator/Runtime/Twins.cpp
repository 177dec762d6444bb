//===- Twins.cpp - double-precision twins of floats in memory -------------===//
#include "Twins.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <vector>

using namespace optiml::emu;

struct optiml::emu::TwinTable {
  std::unordered_map<uint64_t, TwinCell> cells;
  Allocation *last = nullptr; ///< the buffer that was used last
};

TwinTable *optiml::emu::newTwinTable() { return new TwinTable; }
void optiml::emu::clearTwinTable(TwinTable *table) {
  table->cells.clear();
  table->last = nullptr;
}
void optiml::emu::deleteTwinTable(TwinTable *table) { delete table; }

static uint64_t bitsAt(uint64_t address, uint32_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, reinterpret_cast<const void *>(address), bytes);
  return bits;
}

static std::mutex reserveMutex;

/// Returns null where there is no room.
static TwinCell *writtenTwin(Allocation &a, uint64_t offset, uint32_t bytes) {
  Twins &twins = a.twinsOf(bytes);
  const uint64_t i = offset / Allocation::twinUnit(bytes);
  if (!__atomic_load_n(&twins.cells, __ATOMIC_ACQUIRE)) {
    std::lock_guard lock(reserveMutex);
    const uint64_t number = a.bytes / Allocation::twinUnit(bytes) + 1;
    if (!twins.used)
      twins.used = static_cast<uint8_t *>(reserveZeroed(number / Twins::chunk + 1));
    if (twins.used && !twins.cells)
      __atomic_store_n(&twins.cells, static_cast<TwinCell *>(reserveZeroed(number * sizeof(TwinCell))),
                       __ATOMIC_RELEASE);
    if (!twins.cells)
      return nullptr;
  }
  if (uint8_t &used = twins.used[i / Twins::chunk]; !__atomic_load_n(&used, __ATOMIC_RELAXED))
    __atomic_store_n(&used, uint8_t(1), __ATOMIC_RELAXED);
  return &twins.cells[i];
}

/// The cell of a number of `bytes` bytes at an address, or null (only when not `create`).
static TwinCell *cellAt(Block &b, uint64_t address, uint32_t bytes, bool create) {
  TwinTable &t = *b.twins;
  Allocation *a = t.last && t.last->contains(address, 1) ? t.last : Memory::findIn(*b.launch->memory, address);
  if (a) {
    t.last = a;
    if (create)
      return writtenTwin(*a, address - a->address, bytes);
    TwinCell *twins = a->twinsOf(bytes).cells;
    return twins ? &twins[(address - a->address) / Allocation::twinUnit(bytes)] : nullptr;
  }
  if (create)
    return &t.cells[address];
  auto it = t.cells.find(address);
  return it == t.cells.end() ? nullptr : &it->second;
}

void optiml::emu::forEachTwin(const Allocation &a, uint64_t begin, uint64_t bytes,
                              const std::function<void(uint64_t, const TwinCell &)> &visit) {
  uint64_t end = begin + bytes;
  for (uint32_t smallest : {2u, 4u}) {
    const Twins &twins = a.twinsOf(smallest);
    for (uint64_t at = (begin + smallest - 1) / smallest * smallest; twins.cells && at + smallest <= end;
         at += smallest) {
      const uint64_t i = at / smallest;
      if (!twins.used[i / Twins::chunk]) { // to the last of the chunk
        at = (i / Twins::chunk * Twins::chunk + Twins::chunk - 1) * smallest;
        continue;
      }
      const TwinCell &c = twins.cells[i];
      if (c.bytes && at + c.bytes <= end && bitsAt(a.address + at, c.bytes) == c.bits)
        visit(at, c);
    }
  }
}

void optiml::emu::copyTwins(Allocation &to, uint64_t toOffset, const Allocation &from, uint64_t fromOffset,
                            uint64_t bytes) {
  if (toOffset % 4 != fromOffset % 4)
    return;
  std::vector<std::pair<uint64_t, TwinCell>> cells; // the ranges may overlap
  forEachTwin(from, fromOffset, bytes,
              [&](uint64_t offset, const TwinCell &c) { cells.emplace_back(offset - fromOffset, c); });
  for (const auto &[offset, cell] : cells) {
    if (TwinCell *twin = writtenTwin(to, toOffset + offset, cell.bytes))
      *twin = cell;
  }
}

static double asDouble(uint64_t bits, uint32_t bytes) {
  if (bytes == 8)
    return std::bit_cast<double>(bits);
  return std::bit_cast<float>(uint32_t(bits));
}

extern "C" {

// Called after the store: the cell keeps the bits that memory holds now.
void optiml_shadow_store(ThreadContext *context, const void *address, uint32_t bytes, double value, double magnitude) {
  uint64_t a = reinterpret_cast<uint64_t>(address);
  if (a % Allocation::twinUnit(bytes) != 0 || bytes > 8)
    return;
  if (TwinCell *c = cellAt(*fiberOf(context).block, a, bytes, true))
    *c = {bitsAt(a, bytes), value, magnitude, bytes, 0};
}

void optiml_shadow_load(ThreadContext *context, const void *address, uint32_t bytes, Shadow *result) {
  uint64_t a = reinterpret_cast<uint64_t>(address);
  uint64_t bits = bitsAt(a, bytes);
  TwinCell *c = a % 4 == 0 ? cellAt(*fiberOf(context).block, a, bytes, false) : nullptr;
  if (c && c->bytes == bytes && c->bits == bits) {
    *result = {c->value, c->magnitude};
    return;
  }
  double v = asDouble(bits, bytes);
  *result = {v, std::fabs(v)};
}

void optiml_shadow_copy(ThreadContext *context, const void *to, const void *from, uint64_t bytes) {
  uint64_t target = reinterpret_cast<uint64_t>(to), source = reinterpret_cast<uint64_t>(from);
  Block &b = *fiberOf(context).block;
  for (uint32_t smallest : {2u, 4u}) {
    if (target % smallest != 0 || source % smallest != 0)
      return;
    for (uint64_t i = 0; i + smallest <= bytes; i += smallest) {
      const TwinCell *c = cellAt(b, source + i, smallest, false);
      if (!c || !c->bytes || Allocation::twinUnit(c->bytes) != smallest || i + c->bytes > bytes ||
          c->bits != bitsAt(target + i, c->bytes))
        continue;
      TwinCell copied = *c; // the table may move when it grows
      copied.additions = 0;
      if (TwinCell *mine = cellAt(b, target + i, c->bytes, true))
        *mine = copied;
    }
  }
}

void optiml_shadow_give(ThreadContext *context, double value, double magnitude) {
  fiberOf(context).given = {true, value, magnitude};
}

void optiml_shadow_take(ThreadContext *context, uint32_t bits, Shadow *result) {
  const ShuffledTwin &twin = fiberOf(context).taken;
  double v = asDouble(bits, 4);
  *result = twin.isKnown ? Shadow{twin.value, twin.magnitude} : Shadow{v, std::fabs(v)};
}

// Blocks run on several workers; nothing switches threads between the two calls.
static std::mutex atomicMutexes[64];
static std::mutex &atomicMutex(const void *address) {
  return atomicMutexes[reinterpret_cast<uint64_t>(address) / 4 % std::size(atomicMutexes)];
}

void optiml_shadow_atomic_begin(ThreadContext *context, const void *address, uint32_t bytes, Shadow *result) {
  atomicMutex(address).lock();
  optiml_shadow_load(context, address, bytes, result);
  uint64_t a = reinterpret_cast<uint64_t>(address);
  TwinCell *c = a % 4 == 0 ? cellAt(*fiberOf(context).block, a, bytes, false) : nullptr;
  if (c && (c->bytes != bytes || c->bits != bitsAt(a, bytes))) // something else was stored since
    c->additions = 0;
}

void optiml_shadow_atomic_end(ThreadContext *context, const void *address, uint32_t bytes, double value,
                              double magnitude) {
  uint64_t a = reinterpret_cast<uint64_t>(address);
  TwinCell *c = a % 4 == 0 ? cellAt(*fiberOf(context).block, a, bytes, true) : nullptr;
  uint32_t additions = c ? c->additions + 1 : 0;
  optiml_shadow_store(context, address, bytes, value, magnitude);
  if (c)
    c->additions = additions;
  atomicMutex(address).unlock();
}
}
