//===- Progress.h - one line that shows a search at work --------*- C++ -*-===//
#ifndef OPTIML_REPORT_PROGRESS_H
#define OPTIML_REPORT_PROGRESS_H

#include "optiml/Search/Search.h"
#include <chrono>
#include <mutex>
#include <string>

namespace optiml {

/// Rewrites one line on a terminal: evaluations, best so far, what is being tried. Where the descriptor is no terminal
/// it writes nothing at all.
class Progress : public SearchObserver {
public:
  Progress(int descriptor, unsigned budget);
  ~Progress() override; ///< erases the line
  void started(const Recipe &recipe, Fidelity fidelity) override;
  void evaluated(const EvaluationRecord &record) override;
  /// Erases the line, so that a message can be printed; it comes back with the next event.
  void clear();

  /// What the line says, cut to `columns`.
  std::string line(unsigned columns) const;

private:
  void draw(bool now);
  int descriptor;
  bool terminal, drawn = false;
  unsigned budget, done = 0;
  double bestSpeedup = 1, elapsed = 0;
  bool predicted = true;
  std::string trying;
  std::chrono::steady_clock::time_point lastDrawn{};
  std::mutex mutex;
};

} // namespace optiml

#endif
