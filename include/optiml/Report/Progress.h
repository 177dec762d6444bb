//===- Progress.h - one line that shows a search at work --------*- C++ -*-===//
#ifndef OPTIML_REPORT_PROGRESS_H
#define OPTIML_REPORT_PROGRESS_H

#include "optiml/Search/Search.h"
#include <chrono>
#include <mutex>
#include <string>

namespace optiml {

/// What is left to a search; 0: no such limit.
struct ProgressBudget {
  unsigned evaluations = 0;
  double seconds = 0;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

/// Rewrites one line on a terminal: phase, share of the budget, evaluations, best so far, time left, what is being
/// tried. Where the descriptor is no terminal it writes a line for each phase and nothing else.
class Progress : public SearchObserver {
public:
  Progress(int descriptor, ProgressBudget budget);
  ~Progress() override; ///< erases the line
  /// "observing the program", "searching", …
  void phase(const std::string &name);
  void started(const Recipe &recipe, Fidelity fidelity) override;
  void evaluated(const EvaluationRecord &record) override;
  /// Erases the line, so that a message can be printed; it comes back with the next event.
  void clear();

  /// What the line says, cut to `columns`.
  std::string line(unsigned columns) const;

private:
  void draw(bool now);
  std::string budgetText() const;
  int descriptor;
  bool terminal, colours, drawn = false;
  ProgressBudget budget;
  unsigned done = 0;
  double bestSpeedup = 1;
  bool predicted = true;
  std::string doing, trying;
  std::chrono::steady_clock::time_point lastDrawn{};
  std::mutex mutex;
};

} // namespace optiml

#endif
