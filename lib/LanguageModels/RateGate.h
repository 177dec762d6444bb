//===- RateGate.h - how fast one server is asked ----------------*- C++ -*-===//
#ifndef OPTIML_LIB_LANGUAGEMODELS_RATEGATE_H
#define OPTIML_LIB_LANGUAGEMODELS_RATEGATE_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace optiml {

/// At most some requests at a time, a pause between their starts, and none before the time that the server asked for.
class RateGate {
public:
  using Clock = std::chrono::steady_clock;

  /// Waits for a turn; false when `deadline` would pass, or `cancel` became true. A turn must be given back by leave().
  bool enter(Clock::time_point deadline, const std::atomic<bool> *cancel) {
    while (!(cancel && cancel->load())) {
      Clock::time_point now = Clock::now(), next;
      {
        std::lock_guard lock(mutex);
        if (inside < mostAtOnce && now >= notBefore) {
          ++inside;
          notBefore = now + pause;
          return true;
        }
        next = std::max(notBefore, now + std::chrono::milliseconds(5));
      }
      if (next >= deadline)
        return false;
      std::this_thread::sleep_until(std::min(next, now + std::chrono::milliseconds(50))); // `cancel` is looked at often
    }
    return false;
  }
  void leave() {
    std::lock_guard lock(mutex);
    --inside;
  }
  /// Nobody is let in for so long.
  void holdOff(double seconds) {
    std::lock_guard lock(mutex);
    notBefore = std::max(
        notBefore, Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  }

private:
  static constexpr unsigned mostAtOnce = 4;
  static constexpr std::chrono::milliseconds pause{20};
  std::mutex mutex;
  unsigned inside = 0;
  Clock::time_point notBefore{};
};

} // namespace optiml

#endif
