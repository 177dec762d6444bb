//===- StopWatch.h - where time goes ----------------------------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_STOPWATCH_H
#define OPTIML_SUPPORT_STOPWATCH_H

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace optiml {

/// Splits the time since its construction into named steps.
class StopWatch {
public:
  /// What went on since the last call was `step`.
  void lap(std::string step) {
    auto now = std::chrono::steady_clock::now();
    steps.emplace_back(std::move(step), std::chrono::duration<double>(now - last).count());
    last = now;
  }
  std::vector<std::pair<std::string, double>> steps; ///< names and seconds, in order

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

} // namespace optiml

#endif
