//===- Barriers.cpp - block barriers and what it means when they hang -----===//
#include "Fault.h"
#include "Races.h"
#include "Scheduler.h"
#include <map>

using namespace optiml::emu;

static std::string place(const Launch &launch, uint32_t site) {
  if (site >= launch.module->numSites)
    return "an unknown line";
  const SiteDesc &s = launch.module->sites[site];
  return std::string(s.file ? s.file : "") + ":" + std::to_string(s.line);
}

static bool samePlace(const Launch &launch, uint32_t a, uint32_t b) {
  if (a == b || a >= launch.module->numSites || b >= launch.module->numSites)
    return a == b;
  const SiteDesc &x = launch.module->sites[a], &y = launch.module->sites[b];
  return x.line == y.line && x.column == y.column && std::string_view(x.file) == y.file;
}

void Block::releaseBarrier(unsigned id) {
  Barrier &bar = barriers[id];
  quietYields = 0;
  barrierRaces(*this);
  for (uint16_t i : bar.waiters) {
    Fiber &f = fibers[i];
    f.barrierResult = bar.population;
    ++f.barriersPassed;
    if (f.state == FiberState::AtBarrier)
      wake(f);
  }
  bar.waiters.clear();
  bar.population = 0;
}

// A kernel may end early for some threads before the first barrier; hardware lets the others go on. A thread that comes
// to some barriers and not to others is in divergent code, whatever hardware makes of it.
void optiml::emu::reportMissingArrival(Fiber &self, const Fiber &gone) {
  Fault f = faultAt(self, "divergent-barrier", self.barrierSite);
  f.headline = "divergent barrier: a thread of the block has finished without reaching it";
  f.detail = "thread " + triple(gone.context.tid) +
             " passed an earlier barrier, and not this one; every thread of a block must "
             "reach the same __syncthreads()";
  note(self, f);
}

void optiml::emu::waitForBarrier(Fiber &self, uint32_t id, uint32_t predicate, uint32_t site) {
  Block &b = *self.block;
  Barrier &bar = b.barriers[id % b.barriers.size()];
  settleRaces(self);
  if (bar.waiters.empty()) {
    bar.site = site;
  } else if (bar.site != site && !samePlace(*b.launch, bar.site, site)) {
    Fault f = faultAt(self, "divergent-barrier", site);
    const Fiber &other = b.fibers[bar.waiters.front()];
    f.headline = "divergent barrier: threads of one block wait at different barriers";
    f.detail = "thread " + triple(other.context.tid) + " of the same block waits at the barrier in " +
               place(*b.launch, bar.site) + "; every thread of a block must reach the same __syncthreads()";
    raise(self, f);
  }
  self.barrierSite = site;
  if (b.races && b.lateExit)
    reportMissingArrival(self, *b.lateExit);
  self.barrierId = uint8_t(id % b.barriers.size());
  bar.population += predicate ? 1 : 0;
  bar.waiters.push_back(uint16_t(self.linear));
  if (bar.waiters.size() == b.live) {
    b.releaseBarrier(self.barrierId);
    return;
  }
  b.block(self, FiberState::AtBarrier);
  b.switchAway(self);
}

/// Nobody can run: threads wait at a barrier for others that wait elsewhere.
void Block::reportDeadlock() {
  struct Group {
    unsigned count = 0;
    Fiber *example = nullptr;
    uint32_t site = 0;
  };
  std::map<std::string, Group> groups;
  for (uint32_t i = 0; i < launch->threads; ++i) {
    Fiber &f = fibers[i];
    std::string what;
    uint32_t site = 0;
    if (f.state == FiberState::AtBarrier) {
      site = f.barrierSite;
      what = "at the barrier in " + place(*launch, site);
    } else if (f.state == FiberState::AtWarpOp) {
      site = f.request.site;
      char mask[16];
      snprintf(mask, sizeof mask, "0x%08x", f.request.mask);
      what = "in " + std::string(warpOpName(f.request.op)) + " with mask " + mask + " in " + place(*launch, site);
    } else {
      continue;
    }
    Group &g = groups[what];
    if (!g.count++) {
      g.example = &f;
      g.site = site;
    }
  }
  Fiber *who = current;
  uint32_t site = ~0u;
  std::string detail = "no thread of the block can go on: ";
  for (auto &[what, g] : groups) {
    if (g.count && site == ~0u) {
      who = g.example;
      site = g.site;
    }
    detail += std::to_string(g.count) + (g.count == 1 ? " thread waits " : " threads wait ") + what +
              " (for example thread " + triple(g.example->context.tid) + "); ";
  }
  detail += std::to_string(launch->threads - live) + " have finished";
  Fault f = faultAt(*who, "divergent-barrier", site);
  f.headline = "divergent barrier: threads wait for others that never come";
  f.detail = detail;
  raise(*who, f);
}

extern "C" void optiml_barrier(ThreadContext *context, uint32_t id, uint32_t site) {
  waitForBarrier(fiberOf(context), id, 0, site);
}

extern "C" uint32_t optiml_barrier_reduce(ThreadContext *context, uint32_t id, uint32_t op, uint32_t predicate,
                                          uint32_t site) {
  Fiber &f = fiberOf(context);
  // "And" is "nobody brought a false predicate", counted like the others.
  bool counted = op == BarrierAnd ? !predicate : predicate != 0;
  waitForBarrier(f, id, counted, site);
  switch (op) {
  case BarrierAnd: return f.barrierResult == 0;
  case BarrierOr: return f.barrierResult != 0;
  default: return f.barrierResult;
  }
}
