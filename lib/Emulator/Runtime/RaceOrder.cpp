//===- RaceOrder.cpp - what orders two accesses ---------------------------===//
#include "RaceState.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/mman.h>

using namespace optiml::emu;

static void merge(std::vector<Acquired> &into, const Acquired &a) {
  for (Acquired &have : into)
    if (have.object == a.object) {
      have.count = std::max(have.count, a.count);
      return;
    }
  into.push_back(a);
}

/// Whether release `r` covers the access.
static bool covers(const LaunchRaces &races, const Release &r, const Stamp &s) {
  if (r.block != s.block)
    return false;
  if (r.thread == s.thread)
    return s.releaseClock < r.fenceClock;
  // What lanes of one warp do is usually joined by a warp operation just before; give it the benefit of the doubt.
  if (r.thread / 32 == s.thread / 32 && s.epoch <= r.fenceEpoch && s.releaseClock < r.fenceClock)
    return true;
  if (s.epoch < r.fenceEpoch && s.releaseClock < r.fenceClock)
    return true;
  // The writer fenced itself, and a barrier came before the release.
  if (s.epoch >= r.epoch)
    return false;
  auto it = races.fences.find(s.block);
  return it != races.fences.end() && it->second[s.thread] > s.releaseClock;
}

static bool known(const LaunchRaces &races, const std::vector<Acquired> &acquired, const Stamp &s, unsigned depth) {
  for (const Acquired &a : acquired) {
    auto it = a.object->byBlock.find(s.block);
    if (it != a.object->byBlock.end())
      for (uint32_t i : it->second)
        if (i < a.count && covers(races, a.object->log[i], s))
          return true;
  }
  if (!depth)
    return false;
  for (const Acquired &a : acquired)
    for (uint32_t i = 0; i < a.count; ++i) {
      const Release &r = a.object->log[i];
      if (!r.known.empty() && known(races, r.known, s, depth - 1))
        return true;
    }
  return false;
}

bool optiml::emu::orderedByRelease(const Fiber &fiber, const Stamp &s) {
  constexpr unsigned depth = 3;
  const Block &b = *fiber.block;
  const LaunchRaces &all = *b.launch->races;
  return known(all, fiber.races->acquired, s, depth) || known(all, b.races->acquired, s, depth);
}

void optiml::emu::publish(Fiber &fiber, uint64_t address) {
  ThreadRaces &t = *fiber.races;
  Block &b = *fiber.block;
  if (!t.fenced)
    return;
  SyncObject &object = b.launch->races->objects[address];
  std::vector<uint32_t> &mine = object.byBlock[uint32_t(b.linear)];
  if (!mine.empty()) {
    Release &last = object.log[mine.back()];
    if (last.thread == fiber.linear && last.fenceClock == t.fenceClock && last.epoch == b.races->epoch)
      return;
  }
  Release r{uint32_t(b.linear), fiber.linear, b.races->epoch, t.fenceClock, t.fenceEpoch, t.acquired};
  for (const Acquired &a : b.races->acquired)
    merge(r.known, a);
  // What was read from this object itself is in its log already.
  std::erase_if(r.known, [&](const Acquired &a) { return a.object == &object; });
  mine.push_back(uint32_t(object.log.size()));
  object.log.push_back(std::move(r));
}

void optiml::emu::takeUp(Fiber &fiber, uint64_t address) {
  auto &objects = fiber.block->launch->races->objects;
  auto it = objects.find(address);
  if (it != objects.end() && !it->second.log.empty())
    merge(fiber.races->acquired, {&it->second, uint32_t(it->second.log.size())});
}

static void findWritten(const Launch &launch, LaunchRaces &races) {
  const KernelDesc &kernel = *launch.kernel;
  races.writesAnything = kernel.writesBesides & WritesElsewhere;
  for (uint32_t i = 0; i < kernel.numWritten; ++i) {
    uint64_t address;
    memcpy(&address, static_cast<const char *>(launch.args[kernel.written[i].parameter]) + kernel.written[i].offset,
           sizeof(address));
    if (const Allocation *allocation = Memory::findIn(*launch.memory, address))
      races.written.push_back(allocation);
    else
      races.writesAnything = true; // it begins outside of what it leads to
  }
  if (kernel.writesBesides & WritesVariables)
    for (const Allocation *allocation : *launch.memory)
      if (!allocation->symbol.empty())
        races.written.push_back(allocation);
}

LaunchRaces *optiml::emu::newLaunchRaces(const Launch &launch) {
  auto *races = new LaunchRaces;
  uint32_t g = launch.kernel->granule;
  races->granuleShift = std::has_single_bit(g) && g <= 16 ? std::countr_zero(g) : 0;
  findWritten(launch, *races);
  return races;
}

void optiml::emu::deleteLaunchRaces(LaunchRaces *races) { delete races; }

void optiml::emu::deleteBlockRaces(BlockRaces *races) {
  if (races && races->shared)
    munmap(races->shared, races->sharedCells * sizeof(RaceCell));
  delete races;
}

void optiml::emu::prepareRaces(Block &b) {
  Launch &l = *b.launch;
  if (!l.mode(ModeVerify)) {
    deleteBlockRaces(b.races);
    b.races = nullptr;
    for (unsigned i = 0; i < b.capacity; ++i)
      b.fibers[i].races = nullptr;
    return;
  }
  if (!b.races)
    b.races = new BlockRaces;
  BlockRaces &r = *b.races;
  r.threads.resize(l.threads);
  if (l.kernel->usesWarpOps)
    r.clocks.resize(b.warps.size());
  else
    r.clocks.clear();
  uint64_t cells = b.sharedCapacity; // enough for granules of one byte; only touched pages cost memory
  if (cells > r.sharedCells) {
    if (r.shared)
      munmap(r.shared, r.sharedCells * sizeof(RaceCell));
    r.shared = static_cast<RaceCell *>(reserveZeroed(cells * sizeof(RaceCell)));
    r.sharedCells = r.shared ? cells : 0;
  }
  r.regions.assign(l.module->numSites, Region());
  for (unsigned i = 0; i < l.threads; ++i)
    b.fibers[i].races = &r.threads[i];
}

void optiml::emu::startRaces(Block &b) {
  if (!b.races)
    return;
  BlockRaces &r = *b.races;
  r.epoch = 0;
  r.releaseClock = 1;
  r.acquired.clear();
  for (ThreadRaces &t : r.threads) {
    t.fenced = t.pending = false;
    t.fenceClock = t.fenceEpoch = 0;
    t.acquired.clear();
  }
  for (auto &warp : r.clocks)
    for (unsigned i = 0; i < 32; ++i) {
      warp[i].fill(0);
      warp[i][i] = 1;
    }
}

void optiml::emu::barrierRaces(Block &b) {
  if (!b.races)
    return;
  ++b.races->epoch;
  for (ThreadRaces &t : b.races->threads) {
    for (const Acquired &a : t.acquired)
      merge(b.races->acquired, a);
    t.acquired.clear();
  }
}

void optiml::emu::warpSyncRaces(Block &b, Warp &w, uint32_t lanes) {
  if (!b.races || b.races->clocks.empty())
    return;
  auto &clocks = b.races->clocks[w.first / 32];
  std::array<uint32_t, 32> joined{};
  std::vector<Acquired> acquired;
  for (uint32_t left = lanes; left; left &= left - 1) {
    uint32_t lane = uint32_t(std::countr_zero(left));
    for (unsigned i = 0; i < 32; ++i)
      joined[i] = std::max(joined[i], clocks[lane][i]);
    for (const Acquired &a : b.races->threads[w.first + lane].acquired)
      merge(acquired, a);
  }
  for (uint32_t left = lanes; left; left &= left - 1) {
    uint32_t lane = uint32_t(std::countr_zero(left));
    clocks[lane] = joined;
    ++clocks[lane][lane];
    if (!acquired.empty())
      b.races->threads[w.first + lane].acquired = acquired;
  }
}

void optiml::emu::fenceRaces(Fiber &fiber) {
  ThreadRaces &t = *fiber.races;
  BlockRaces &b = *fiber.block->races;
  t.fenced = true;
  t.fenceClock = ++b.releaseClock;
  t.fenceEpoch = b.epoch;
  std::vector<uint32_t> &fences = fiber.block->launch->races->fences[uint32_t(fiber.block->linear)];
  if (fences.size() < b.threads.size())
    fences.resize(b.threads.size());
  fences[fiber.linear] = t.fenceClock;
}

extern "C" void optiml_fence(ThreadContext *context, uint32_t scope) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Fiber &f = fiberOf(context);
  if (f.races && scope > 0)
    f.block->interleave(f);
  settleRaces(f);
  if (f.races)
    fenceRaces(f);
}
