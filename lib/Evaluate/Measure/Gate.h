//===- Gate.h - many may pass, or one has the place to itself ---*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_MEASURE_GATE_H
#define OPTIML_LIB_EVALUATE_MEASURE_GATE_H

#include <condition_variable>
#include <mutex>

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

} // namespace optiml

#endif
