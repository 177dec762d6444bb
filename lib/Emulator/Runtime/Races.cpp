//===- Races.cpp - data races and uninitialized shared memory -------------===//
#include "Races.h"
#include "RaceState.h"
#include <algorithm>
#include <cstring>

using namespace optiml::emu;

static std::string place(const Launch &l, const Stamp &s) {
  if (s.site >= l.module->numSites)
    return "an unknown line";
  const SiteDesc &d = l.module->sites[s.site];
  return std::string(d.file ? d.file : "") + ":" + std::to_string(d.line);
}

/// "offset 12 of shared variable 'tile'"
static std::string target(const Fiber &fiber, const Region &region, uint64_t address) {
  std::string offset = "offset " + std::to_string(address - region.lo) + " of ";
  if (region.allocation)
    return offset + region.allocation->describe();
  const Block &b = *fiber.block;
  for (uint32_t i = 0; i < b.launch->kernel->numSharedVars; ++i) {
    const SharedVarDesc &v = b.launch->kernel->sharedVars[i];
    if (reinterpret_cast<uint64_t>(b.shared) + v.offset == region.lo)
      return offset + "shared variable '" + v.name + "'";
  }
  return offset + "dynamic shared memory";
}

static Fault describeRace(const Fiber &fiber, const Region &region, uint64_t address, AccessKind kind, uint32_t site,
                          const Stamp &other, bool otherWrites) {
  const Launch &l = *fiber.block->launch;
  Fault f = faultAt(fiber, "race", site);
  const char *where = region.kind == RegionKind::Shared ? "shared" : "global";
  f.headline = std::string("data race in ") + where + " memory: " + accessName(kind) + " unordered with " +
               (other.strong  ? "an atomic or volatile access"
                : otherWrites ? "a store"
                              : "a load") +
               " of another thread";
  uint32_t t = other.thread;
  uint32_t tid[3] = {t % l.block[0], t / l.block[0] % l.block[1], t / l.block[0] / l.block[1]};
  std::array<uint32_t, 3> block = l.coordinates(other.block);
  f.detail = "the other access is in " + place(l, other) + ", by thread " + triple(tid) + " of block " +
             triple(block.data()) + (other.block == fiber.block->linear ? " (the same block)" : "") + "; both touch " +
             target(fiber, region, address);
  return f;
}

void optiml::emu::settleStore(Fiber &fiber) {
  ThreadRaces &t = *fiber.races;
  if (!t.pending)
    return;
  t.pending = false;
  Fault f = t.pendingFault;
  if (memcmp(reinterpret_cast<const void *>(t.pendingAddress), t.pendingBytes.data(), t.pendingSize) == 0) {
    f.kind = "benign-race";
    f.headline += " (both store the same value)";
  }
  note(fiber, f);
}

namespace {
struct Access {
  Fiber &fiber;
  const Region &region;
  uint64_t address;
  uint64_t bytes;
  AccessKind kind;
  uint32_t site;
  bool reported = false;

  [[gnu::noinline, gnu::cold]] void conflict(const Stamp &other, bool otherWrites) {
    if (reported)
      return; // one report an access; its other granules tell the same
    reported = true;
    Fault f = describeRace(fiber, region, address, kind, site, other, otherWrites);
    ThreadRaces &t = *fiber.races;
    if (otherWrites && isStore(kind) && !other.strong && bytes <= t.pendingBytes.size()) {
      t.pending = true;
      t.pendingAddress = address;
      t.pendingSize = uint32_t(bytes);
      memcpy(t.pendingBytes.data(), reinterpret_cast<const void *>(address), bytes);
      t.pendingFault = std::move(f);
      return;
    }
    note(fiber, f);
  }

  void checkReadOnly(const Stamp &write) {
    if (kind == AccessReadOnlyLoad && write.valid() && !reported)
      reportStale(write);
  }
  void checkWritten(const RaceCell &cell, const char *what) {
    if (region.kind == RegionKind::Shared && !cell.write.valid() && !reported)
      reportUnwritten(what);
  }
  void touch(RaceCell &cell, const Stamp &now, uint32_t run);

private:
  bool conflicts(const Stamp &before, const Stamp &now) const;
  [[gnu::noinline, gnu::cold]] void reportStale(const Stamp &write) {
    reported = true;
    Fault f = faultAt(fiber, "stale-read", site);
    f.headline = "__ldg of memory that the same launch writes: it may be what was there before";
    f.detail = "it was written in " + place(*fiber.block->launch, write) + ", and is " + target(fiber, region, address);
    note(fiber, f);
  }

  [[gnu::noinline, gnu::cold]] void reportUnwritten(const char *what) {
    reported = true;
    Fault f = faultAt(fiber, "uninitialized-shared", site);
    f.headline = std::string(what) + " shared memory that nothing has written";
    f.detail = "it is " + target(fiber, region, address);
    note(fiber, f);
  }
};
} // namespace

bool Access::conflicts(const Stamp &s, const Stamp &now) const {
  // Volatile accesses within one warp are the old warp-synchronous style, which is wrong since Volta.
  const bool warpSynchronous = region.kind == RegionKind::Shared && !isAtomic(kind) && kind != AccessFirstLoad &&
                               s.thread / 32 == now.thread / 32;
  const bool outOfScope = (now.blockScope || s.blockScope) && now.block != s.block;
  if (now.strong && s.strong && !warpSynchronous && !outOfScope)
    return false;
  return !orderedBefore(fiber, s);
}

void Access::touch(RaceCell &cell, const Stamp &now, uint32_t run) {
  if (cell.run != run) {
    cell.run = run;
    cell.write = cell.read[0] = cell.read[1] = Stamp();
  } else if (isLoad(kind) && (kind != AccessReadOnlyLoad || !cell.write.valid()) &&
             (cell.read[0].sameMoment(now) || cell.read[1].sameMoment(now))) {
    return; // nothing was written since this thread read it last
  }
  auto isOther = [&](const Stamp &s) { return s.valid() && !s.sameThread(now); };
  if (isOther(cell.write) && conflicts(cell.write, now))
    conflict(cell.write, true);
  if (isLoad(kind)) {
    checkReadOnly(cell.write);
    checkWritten(cell, "load of");
    // Keep two readers that matter: one that is ordered before this one says nothing more.
    Stamp *slot = nullptr;
    for (Stamp &r : cell.read)
      if (!slot && (!r.valid() || r.sameThread(now)))
        slot = &r;
    for (Stamp &r : cell.read)
      if (!slot && orderedBefore(fiber, r))
        slot = &r;
    *(slot ? slot : &cell.read[1]) = now;
    return;
  }
  for (Stamp &r : cell.read)
    if (isOther(r) && conflicts(r, now))
      conflict(r, false);
  if (isAtomic(kind))
    checkWritten(cell, "atomic operation on");
  cell.write = now;
  cell.read[0] = cell.read[1] = Stamp();
}

static RaceCell *cellsOf(Block &b, const Region &region, uint64_t &origin, uint32_t &run) {
  if (region.kind == RegionKind::Shared) {
    origin = reinterpret_cast<uint64_t>(b.shared);
    run = b.run;
    return b.races->shared;
  }
  Allocation &a = *region.allocation;
  // A cell for every byte, so that kernels with different granules can use it; only touched pages cost memory.
  if (!a.races)
    a.races = static_cast<RaceCell *>(reserveZeroed(a.bytes * sizeof(RaceCell)));
  origin = a.address;
  run = b.launch->id;
  return a.races;
}

/// Whether nothing of the launch writes to it.
static bool isOnlyRead(const Launch &launch, const Region &region) {
  if (region.kind == RegionKind::Constant || region.kind == RegionKind::ReadOnly)
    return true;
  const std::vector<const Allocation *> &written = launch.races->written;
  return region.kind == RegionKind::Global && !launch.races->writesAnything &&
         region.allocation->kind != MemoryKind::Heap &&
         std::find(written.begin(), written.end(), region.allocation) == written.end();
}

void optiml::emu::raceAccess(Fiber &fiber, uint64_t address, uint64_t bytes, AccessKind kind, uint32_t site,
                             uint32_t alignment) {
  if (fiber.races->pending)
    settleStore(fiber);
  Block &b = *fiber.block;
  Region &region = b.races->regions[site];
  bool good = address - region.lo <= region.bytes && bytes <= region.bytes - (address - region.lo) &&
              (address & (alignment - 1)) == 0 && !(region.allocation && region.allocation->freed) &&
              region.kind != RegionKind::Constant;
  if (!good)
    region = checkedRegion(fiber, address, bytes, kind, site, alignment);
  if ((kind == AccessLoad || kind == AccessReadOnlyLoad) && isOnlyRead(*b.launch, region)) {
    if (region.bytes >= bytes)
      fiber.context.siteCache[site] = {region.lo, region.bytes - bytes};
    return;
  }
  if (region.kind != RegionKind::Global && region.kind != RegionKind::Shared)
    return;
  uint64_t origin;
  uint32_t run;
  RaceCell *cells = cellsOf(b, region, origin, run);
  if (!cells)
    return;
  bool strong = isAtomic(kind) || kind == AccessVolatileLoad || kind == AccessVolatileStore || kind == AccessFirstLoad;
  if (isAtomic(kind) || kind == AccessVolatileLoad)
    takeUp(fiber, address);
  Stamp now;
  now.block = uint32_t(b.linear);
  now.thread = fiber.linear;
  now.epoch = b.races->epoch;
  now.warpClock = b.races->clocks.empty() ? 0 : b.races->clocks[fiber.warp][fiber.context.lane][fiber.context.lane];
  now.releaseClock = b.races->releaseClock;
  now.strong = strong;
  now.blockScope = kind == AccessAtomicBlock;
  now.site = site;
  const uint32_t shift = b.launch->races->granuleShift;
  Access access{fiber, region, address, bytes, kind, site};
  for (uint64_t i = (address - origin) >> shift, last = (address + bytes - 1 - origin) >> shift; i <= last; ++i)
    access.touch(cells[i], now, run);
  if (isAtomic(kind) || kind == AccessVolatileStore)
    publish(fiber, address);
}

void optiml::emu::threadExitedRaces(Fiber &fiber) { settleRaces(fiber); }
