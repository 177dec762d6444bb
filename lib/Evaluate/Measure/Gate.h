//===- Gate.h - who may use the workers, and when ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_MEASURE_GATE_H
#define OPTIML_LIB_EVALUATE_MEASURE_GATE_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

namespace optiml {

/// A std::shared_mutex whose writer does not wait for ever while readers come and go.
class Gate {
public:
  void lock_shared() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !isClosed; });
    ++inside;
  }
  void unlock_shared() {
    std::lock_guard lock(mutex);
    --inside;
    changed.notify_all();
  }
  void lock() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !isClosed; });
    isClosed = true;
    changed.wait(lock, [&] { return inside == 0; });
  }
  void unlock() {
    std::lock_guard lock(mutex);
    isClosed = false;
    changed.notify_all();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isClosed = false;
  unsigned inside = 0;
};

/// A line before some places: first come, first served, but for those who go ahead of all others.
class Line {
public:
  using Clock = std::chrono::steady_clock;
  explicit Line(unsigned places) : free(places) {}
  /// Waits for a place. False: there was none by then, or `cancel` was raised.
  bool enter(bool ahead, Clock::time_point by, const std::atomic<bool> *cancel) {
    std::unique_lock lock(mutex);
    const auto own = waiting.insert({!ahead, next++}).first;
    bool hasTurn = false;
    while (!(hasTurn = free && own == waiting.begin()) && Clock::now() < by && !(cancel && *cancel))
      changed.wait_for(lock, std::chrono::milliseconds(50)); // the flag wakes nobody
    waiting.erase(own);
    free -= hasTurn;
    changed.notify_all();
    return hasTurn;
  }
  void leave() {
    std::lock_guard lock(mutex);
    ++free;
    changed.notify_all();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::pair<bool, uint64_t>> waiting;
  uint64_t next = 0;
  unsigned free;
};

} // namespace optiml

#endif
