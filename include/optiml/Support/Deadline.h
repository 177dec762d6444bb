//===- Deadline.h - when something must be done by --------------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_DEADLINE_H
#define OPTIML_SUPPORT_DEADLINE_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace optiml {

/// A flag that is raised after some time, or as soon as an outer flag is. What polls it (child processes, searches)
/// ends then.
class Deadline {
public:
  /// `seconds` of wall time from now; 0 or infinity: none. `outer` may be null and must live longer.
  Deadline(double seconds, const std::atomic<bool> *outer);
  ~Deadline();
  Deadline(const Deadline &) = delete;
  Deadline &operator=(const Deadline &) = delete;

  const std::atomic<bool> *flag() const { return &raised; }
  /// What polls the flag is wanted no longer.
  void raise() { raised = true; }
  bool passed() const { return raised; }
  /// Seconds that are left, never negative; infinity when there is no limit.
  double remaining() const;

private:
  void watch();

  using Clock = std::chrono::steady_clock;
  const Clock::time_point end; ///< max(): none
  const std::atomic<bool> *outer;
  std::atomic<bool> raised{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool closing = false;
  std::thread watcher;
};

} // namespace optiml

#endif
