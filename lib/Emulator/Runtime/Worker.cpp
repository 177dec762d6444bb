//===- Worker.cpp - the threads that run blocks ---------------------------===//
#include "Fault.h"
#include "Races.h"
#include "Scheduler.h"
#include "Settings.h"
#include "Trace.h"
#include <algorithm>
#include <cfenv>
#include <condition_variable>
#include <deque>
#include <numeric>
#include <random>
#include <sched.h>
#include <thread>
#include <unistd.h>

using namespace optiml::emu;

static thread_local Block *runningBlock = nullptr;
static thread_local bool runsDirect = false;

Fiber *optiml::emu::currentFiber() {
  Block *b = runningBlock;
  return !b ? nullptr : runsDirect ? &b->fibers[0] : b->current;
}

std::array<uint32_t, 3> Launch::coordinates(uint64_t b) const {
  return {uint32_t(b % grid[0]), uint32_t(b / grid[0] % grid[1]), uint32_t(b / grid[0] / grid[1])};
}

uint64_t Launch::nextBlock() {
  using Clock = std::chrono::steady_clock;
  bool late = beginBy != Clock::time_point::max() && begun && Clock::now() > beginBy;
  uint64_t i = late ? blocks : next.fetch_add(1);
  if (i < blocks)
    ++begun;
  return i;
}

namespace {

/// Runs blocks of one launch on the calling thread. Its Blocks are kept for the next launch.
class Worker {
public:
  bool run(Launch &launch);

private:
  std::unique_ptr<Block> obtain(Launch &launch);
  void recycle(std::unique_ptr<Block> block) {
    if (idle.size() < 8)
      idle.push_back(std::move(block));
  }
  Outcome resume(Block &block) {
    runningBlock = &block;
    Outcome o = block.resume();
    runningBlock = nullptr;
    return o;
  }
  std::vector<std::unique_ptr<Block>> idle;
};

std::unique_ptr<Block> Worker::obtain(Launch &launch) {
  std::unique_ptr<Block> block;
  if (idle.empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(idle.back());
    idle.pop_back();
  }
  if (block->preparedFor != launch.id && !block->prepare(launch))
    return nullptr;
  return block;
}

namespace {
/// Fibers take the mode of the thread that makes them.
class Rounding {
public:
  Rounding() : before(fegetround()) { fesetround(settings().rounding.value_or(before)); }
  ~Rounding() { fesetround(before); }

private:
  int before;
};
} // namespace

bool Worker::run(Launch &launch) {
  const Rounding rounding;
  bool direct = launch.kernel->block && !launch.mode(ModeVerify) && !launch.mode(ModeTrace);
  if (direct) {
    std::unique_ptr<Block> block = obtain(launch);
    if (!block)
      return false;
    runningBlock = block.get();
    runsDirect = true;
    block->runDirect();
    runsDirect = false;
    runningBlock = nullptr;
    recycle(std::move(block));
    return true;
  }
  std::deque<std::unique_ptr<Block>> stalled;
  unsigned fruitless = 0; // stalled blocks resumed in a row that only polled on
  bool handedOut = false; // no block is left to start
  while (!launch.stop.load(std::memory_order_relaxed)) {
    std::unique_ptr<Block> block;
    // Older blocks go first; a new one is taken up once every stalled block has been tried.
    bool fresh = !handedOut && fruitless >= stalled.size();
    if (fresh) {
      uint64_t i = launch.nextBlock();
      handedOut = i >= launch.blocks;
      if (!handedOut) {
        block = obtain(launch);
        if (!block)
          return false;
        block->start(launch.blockAt(i));
      }
    }
    if (!block) {
      if (stalled.empty()) {
        if (handedOut)
          break;
        continue;
      }
      if (handedOut && fruitless >= stalled.size()) {
        fruitless = 0;
        sched_yield();
      }
      block = std::move(stalled.front());
      stalled.pop_front();
    }
    Outcome outcome = resume(*block);
    if (outcome == Outcome::Stalled) {
      stalled.push_back(std::move(block));
      fruitless = fresh && !handedOut ? 0 : fruitless + 1;
      if (stalled.size() == 1 && !handedOut)
        fruitless = 1;
      continue;
    }
    if (outcome == Outcome::SetAside) {
      constexpr size_t mostBlocks = 8; // that have begun
      stalled.push_back(std::move(block));
      fruitless = stalled.size() < mostBlocks ? unsigned(stalled.size()) : 0;
      continue;
    }
    fruitless = 0;
    recycle(std::move(block));
  }
  for (auto &block : stalled)
    recycle(std::move(block));
  return true;
}

/// Threads that live as long as the process, one Worker each; worker 0 is whoever launches.
class Pool {
public:
  static Pool &get() {
    static Pool *pool = new Pool;
    return *pool;
  }
  bool run(Launch &launch, unsigned count);

private:
  void grow(unsigned count);
  void threadMain(unsigned index);
  std::mutex launchMutex; ///< one launch at a time
  std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<std::unique_ptr<Worker>> workers;
  pid_t owner = getpid(); ///< after fork the threads are gone
  Launch *current = nullptr;
  unsigned wanted = 0, busy = 0;
  uint64_t round = 0;
  bool failed = false;
};

void Pool::grow(unsigned count) {
  if (workers.empty())
    workers.push_back(std::make_unique<Worker>());
  while (workers.size() < count) {
    workers.push_back(std::make_unique<Worker>());
    std::thread(&Pool::threadMain, this, unsigned(workers.size() - 1)).detach();
  }
}

void Pool::threadMain(unsigned index) {
  uint64_t seen = 0;
  useSignalStack();
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return round != seen; });
    seen = round;
    if (index >= wanted)
      continue;
    Launch *launch = current;
    Worker &worker = *workers[index];
    lock.unlock();
    bool ok = worker.run(*launch);
    lock.lock();
    failed |= !ok;
    if (--busy == 0)
      done.notify_one();
  }
}

bool Pool::run(Launch &launch, unsigned count) {
  std::lock_guard one(launchMutex);
  if (owner != getpid() && workers.size() > 1)
    count = 1;
  count = unsigned(std::max<uint64_t>(1, std::min<uint64_t>(count, launch.blocks)));
  {
    std::lock_guard lock(mutex);
    grow(count);
    current = &launch;
    wanted = count;
    busy = count - 1;
    failed = false;
    if (count > 1)
      ++round;
  }
  if (count > 1)
    wake.notify_all();
  bool ok = workers[0]->run(launch);
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return busy == 0; });
  return ok && !failed;
}

} // namespace

bool optiml::emu::runLaunch(Launch &launch, unsigned workers, std::string &error) {
  static std::atomic<uint32_t> ids{0};
  launch.id = ++ids;
  launch.threads = launch.block[0] * launch.block[1] * launch.block[2];
  uint64_t total = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  launch.order = launch.onlyBlocks;
  for (uint32_t b : launch.onlyBlocks)
    if (b >= total) {
      error = "block " + std::to_string(b) + " was asked for, but the grid has only " + std::to_string(total);
      return false;
    }
  launch.warpOrder.resize((launch.threads + 31) / 32);
  std::iota(launch.warpOrder.begin(), launch.warpOrder.end(), 0u);
  if (launch.orderSeed) {
    constexpr uint64_t mostPermuted = uint64_t(1) << 28;
    std::mt19937_64 random(launch.orderSeed);
    if (launch.order.empty() && total <= mostPermuted) {
      launch.order.resize(total);
      std::iota(launch.order.begin(), launch.order.end(), 0u);
    }
    // Not std::shuffle, whose result depends on the library.
    auto permute = [&](std::vector<uint32_t> &v) {
      for (size_t i = v.size(); i > 1; --i)
        std::swap(v[i - 1], v[random() % i]);
    };
    permute(launch.order);
    permute(launch.warpOrder);
  }
  launch.blocks = launch.order.empty() ? total : launch.order.size();
  launch.memory = Memory::get().liveTable();
  if (launch.mode(ModeVerify)) {
    workers = 1; // repeatable findings
    launch.races = newLaunchRaces(launch);
  }
  if (launch.mode(ModeTrace))
    workers = 1;
  bool ok = Pool::get().run(launch, workers);
  deleteLaunchRaces(launch.races);
  launch.races = nullptr;
  if (!ok)
    error = "not enough memory for the threads' stacks";
  return ok && !launch.stop;
}
