//===- Deadline.cpp - when something must be done by ----------------------===//
#include "optiml/Support/Deadline.h"
#include <algorithm>
#include <limits>

using namespace optiml;

// How late the flag follows an outer one. A signal handler may raise that, so nothing can be notified.
static constexpr std::chrono::milliseconds period{20};
// Longer limits are none: they must not overflow the clock.
static constexpr double mostSeconds = 1e8;

static std::chrono::steady_clock::time_point endAfter(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (!(seconds > 0 && seconds < mostSeconds))
    return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Deadline::Deadline(double seconds, const std::atomic<bool> *outer)
    : end(endAfter(seconds)), outer(outer), watcher([this] { watch(); }) {}

Deadline::~Deadline() {
  {
    std::lock_guard lock(mutex);
    closing = true;
  }
  changed.notify_one();
  watcher.join();
}

double Deadline::remaining() const {
  if (end == Clock::time_point::max())
    return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(end - Clock::now()).count());
}

void Deadline::watch() {
  std::unique_lock lock(mutex);
  while (!closing && !raised) {
    raised = (outer && *outer) || Clock::now() >= end;
    if (!raised)
      changed.wait_until(lock, std::min(end, Clock::now() + period), [this] { return closing; });
  }
}
