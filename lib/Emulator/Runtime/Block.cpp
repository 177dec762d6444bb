//===- Block.cpp - the fibers of one block and how they take turns --------===//
#include "Fault.h"
#include "Races.h"
#include "Scheduler.h"
#include "Trace.h"
#include "Twins.h"
#include <bit>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>

using namespace optiml::emu;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

static std::atomic<uint32_t> runCounter{0};
static constexpr uint64_t sharedRegion = 512 << 10;

Block::~Block() {
  if (shared)
    munmap(shared - 4096, sharedCapacity + 8192);
  deleteBlockRaces(races);
  deleteBlockTrace(trace);
  deleteTwinTable(twins);
}

static bool needsThreads(const Launch &launch) {
  return !launch.kernel->block || launch.mode(ModeVerify) || launch.mode(ModeTrace);
}

bool Block::prepare(Launch &l) {
  launch = &l;
  preparedFor = l.id;
  unsigned fiberCount = needsThreads(l) ? l.threads : 1;
  if (fiberCount > capacity) {
    fibers = std::make_unique<Fiber[]>(fiberCount);
    capacity = fiberCount;
    ring.assign(std::bit_ceil(fiberCount), 0);
  }
  if (!stacks.reserve(fiberCount))
    return false;
  uint64_t staticPart = (uint64_t(l.kernel->staticShared) + 15) & ~uint64_t(15);
  sharedBytes = staticPart + l.dynamicShared;
  if (!shared || sharedBytes > sharedCapacity) {
    if (shared)
      munmap(shared - 4096, sharedCapacity + 8192);
    sharedCapacity = std::max(sharedRegion, (sharedBytes + 4095) & ~uint64_t(4095));
    void *p = reserveZeroed(sharedCapacity + 8192);
    if (!p) {
      shared = nullptr;
      return false;
    }
    shared = static_cast<char *>(p) + 4096;
    mprotect(shared - 4096, 4096, PROT_NONE);
    mprotect(shared + sharedCapacity, 4096, PROT_NONE);
  }
  siteCache.assign(l.module->numSites + 1, SiteCache{1, 0});
  if (l.mode(ModeTrace))
    counts.resize(size_t(l.module->numBlocks) * fiberCount);
  warps.assign((l.threads + 31) / 32, Warp());
  for (uint32_t w = 0; w < warps.size(); ++w) {
    warps[w].first = w * 32;
    uint32_t lanes = std::min(32u, l.threads - w * 32);
    warps[w].present = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
  for (uint32_t i = 0; i < fiberCount; ++i) {
    Fiber &f = fibers[i];
    f.block = this;
    f.linear = i;
    f.warp = uint16_t(i / 32);
    ThreadContext &c = f.context;
    c.tid[0] = i % l.block[0];
    c.tid[1] = i / l.block[0] % l.block[1];
    c.tid[2] = i / l.block[0] / l.block[1];
    for (int d = 0; d < 3; ++d) {
      c.ntid[d] = l.block[d];
      c.nctaid[d] = l.grid[d];
    }
    c.shared = shared;
    c.siteCache = siteCache.data();
    c.blockCounts = l.mode(ModeTrace) ? counts.data() + size_t(i) * l.module->numBlocks : nullptr;
    c.lane = i % 32;
    c.dynamicShared = l.dynamicShared;
    c.workspace[0] = uint32_t(l.workspace >> 32);
    c.workspace[1] = uint32_t(l.workspace);
    c.runtime = &f;
  }
  prepareRaces(*this);
  prepareTrace(*this);
  if (l.mode(ModeShadow) && !twins)
    twins = newTwinTable();
  return true;
}

void Block::start(uint64_t linearBlock) {
  linear = linearBlock;
  run = ++runCounter;
  ctaid = launch->coordinates(linearBlock);
  if (sharedBytes)
    memset(shared, freshByte(), sharedBytes);
  if (!counts.empty())
    std::fill(counts.begin(), counts.end(), 0);
  live = launch->threads;
  lateExit = nullptr;
  quietYields = 0;
  chances = timesSetAside = 0;
  ringHead = ringCount = 0;
  for (Barrier &b : barriers) {
    b.waiters.clear();
    b.population = 0;
  }
  stacks.reset();
  pendingStack = -1;
  for (uint32_t w : launch->warpOrder) {
    Warp &warp = warps[w];
    warp.exited = warp.waiting = warp.asking = 0;
    warp.runnable = uint32_t(std::popcount(warp.present));
    for (uint32_t i = 0; i < warp.runnable; ++i) {
      Fiber &f = fibers[warp.first + i];
      for (int d = 0; d < 3; ++d)
        f.context.ctaid[d] = ctaid[d];
      f.state = FiberState::Fresh;
      f.yielded = false;
      f.barriersPassed = 0;
      f.stack = -1;
      push(f);
    }
  }
  startRaces(*this);
  startTrace(*this);
  if (twins)
    clearTwinTable(twins);
}

/// Runs in the context that was just switched to: remembers where the other one stopped.
void Block::arrive(transfer_t t) {
  if (fromScheduler)
    scheduler = t.fctx;
  else if (previous)
    previous->resumeAt = t.fctx;
  fromScheduler = false;
  previous = nullptr;
  if (pendingStack >= 0) {
    stacks.give(pendingStack);
    pendingStack = -1;
  }
}

void Block::leave(Outcome why) {
  outcome = why;
  previous = nullptr;
  jump_fcontext(scheduler, this);
  __builtin_unreachable();
}

/// The life of a stack: one thread after the other, as long as the next one has not started either.
static void fiberMain(transfer_t t) {
  Block &b = *static_cast<Block *>(t.data);
  b.arrive(t);
  Fiber *self = b.current;
  for (;;) {
    self->state = FiberState::Running;
    b.launch->kernel->thread(&self->context, b.launch->args);
    b.threadExited(*self);
    Fiber *next = b.pop();
    if (!next) {
      if (b.live)
        b.reportDeadlock();
      b.leave(Outcome::Finished);
    }
    if (next->state == FiberState::Fresh) {
      next->stack = self->stack;
      self->stack = -1;
      self = b.current = next;
      continue;
    }
    b.pendingStack = self->stack;
    self->stack = -1;
    b.jumpTo(nullptr, *next);
  }
}

static void directMain(transfer_t t) {
  Block &b = *static_cast<Block *>(t.data);
  b.arrive(t);
  Launch &l = *b.launch;
  ThreadContext &c = b.fibers[0].context;
  while (!l.stop.load(std::memory_order_relaxed)) {
    uint64_t i = l.nextBlock();
    if (i >= l.blocks)
      break;
    b.linear = l.blockAt(i);
    b.ctaid = l.coordinates(b.linear);
    for (int d = 0; d < 3; ++d) {
      c.ctaid[d] = b.ctaid[d];
      c.tid[d] = 0;
    }
    c.lane = 0;
    if (b.sharedBytes)
      memset(b.shared, freshByte(), b.sharedBytes);
    l.kernel->block(&c, l.args);
  }
  b.leave(Outcome::Finished);
}

static void createContext(Block &b, Fiber &f, void (*main)(transfer_t)) {
  f.stack = b.stacks.take();
  f.resumeAt = make_fcontext(b.stacks.top(f.stack), b.stacks.usableBytes(f.stack), main);
}

void Block::jumpTo(Fiber *self, Fiber &next) {
  if (next.state == FiberState::Fresh)
    createContext(*this, next, fiberMain);
  next.state = FiberState::Running;
  if (next.yielded) {
    next.yielded = false;
    ++warpOf(next).runnable;
  }
  previous = self;
  current = &next;
  arrive(jump_fcontext(next.resumeAt, this));
}

Outcome Block::resume() {
  outcome = Outcome::Running;
  quietYields = 0;
  Fiber *next = pop();
  fromScheduler = true;
  if (next->state == FiberState::Fresh)
    createContext(*this, *next, fiberMain);
  next->state = FiberState::Running;
  if (next->yielded) {
    next->yielded = false;
    ++warpOf(*next).runnable;
  }
  current = next;
  previous = nullptr;
  transfer_t t = jump_fcontext(next->resumeAt, this);
  if (previous)
    previous->resumeAt = t.fctx;
  previous = nullptr;
  if (outcome == Outcome::Finished)
    finishTrace(*this);
  return outcome;
}

void Block::runDirect() {
  stacks.reset();
  Fiber &f = fibers[0];
  createContext(*this, f, directMain);
  fromScheduler = true;
  current = &f;
  previous = nullptr;
  if (twins)
    clearTwinTable(twins);
  jump_fcontext(f.resumeAt, this);
}

void Block::wake(Fiber &f) {
  f.state = FiberState::Ready;
  ++warpOf(f).runnable;
  push(f);
}

void Block::block(Fiber &self, FiberState state) {
  self.state = state;
  Warp &w = warpOf(self);
  --w.runnable;
  if (w.asking && !w.runnable)
    resolveActiveMasks(w);
}

void Block::switchAway(Fiber &self) {
  if (launch->stop.load(std::memory_order_relaxed))
    leave(Outcome::Stopped);
  Fiber *next = pop();
  if (!next)
    reportDeadlock();
  if (next != &self)
    return jumpTo(&self, *next);
  self.state = FiberState::Running;
  if (self.yielded) {
    self.yielded = false;
    ++warpOf(self).runnable;
  }
}

void Block::yield(Fiber &self) {
  if (launch->stop.load(std::memory_order_relaxed))
    leave(Outcome::Stopped);
  settleRaces(self);
  bool stalled = ++quietYields > 4 * ringCount + 16;
  self.yielded = true;
  block(self, FiberState::Ready);
  push(self);
  if (!stalled)
    return switchAway(self);
  pause(self, Outcome::Stalled);
}

void Block::pause(Fiber &self, Outcome why) {
  outcome = why;
  previous = &self;
  fromScheduler = false;
  arrive(jump_fcontext(scheduler, this));
}

void Block::interleave(Fiber &self) {
  constexpr uint32_t mostTimes = 8;
  if (!launch->orderSeed || launch->blocks < 2 || timesSetAside == mostTimes)
    return;
  uint64_t chance = (launch->orderSeed * 0x9E3779B97F4A7C15 ^ linear * 0xBF58476D1CE4E5B9) + ++chances;
  chance *= 0x94D049BB133111EB;
  if (chance >> 62) // three times of four
    return;
  ++timesSetAside;
  settleRaces(self);
  self.yielded = true;
  block(self, FiberState::Ready);
  push(self);
  pause(self, Outcome::SetAside);
}

void Block::threadExited(Fiber &self) {
  quietYields = 0;
  threadExitedRaces(self);
  if (races && self.barriersPassed) {
    lateExit = &self;
    for (Barrier &b : barriers)
      if (!b.waiters.empty())
        reportMissingArrival(fibers[b.waiters.front()], self);
  }
  self.state = FiberState::Exited;
  --live;
  Warp &w = warpOf(self);
  w.exited |= 1u << self.context.lane;
  --w.runnable;
  if (live)
    for (unsigned id = 0; id < barriers.size(); ++id)
      if (!barriers[id].waiters.empty() && barriers[id].waiters.size() == live)
        releaseBarrier(id);
  // Lanes that waited for this one only.
  for (uint32_t left = w.waiting; left;) {
    uint32_t lane = uint32_t(std::countr_zero(left));
    left &= left - 1;
    if (w.waiting >> lane & 1)
      completeWarpOp(w, fibers[w.first + lane].request.mask);
  }
  if (w.asking && !w.runnable)
    resolveActiveMasks(w);
}

void optiml::emu::abandonLaunch(Fiber &fiber) {
  fiber.block->launch->stop = true;
  fiber.block->leave(Outcome::Stopped);
}

extern "C" void optiml_yield(ThreadContext *context) {
  Fiber &f = fiberOf(context);
  if (f.block->launch->kernel->block && !needsThreads(*f.block->launch))
    sched_yield();
  else
    f.block->yield(f);
}
