//===- Trajectory.h - a search, line by line --------------------*- C++ -*-===//
//
// A JSON Lines file. Every line is an object with an "event":
//
//   "search"      first line: what was searched (whatever the driver says)
//   "evaluation"  number (0: the original), recipe, key, verdict, times in seconds, speedup, counters, bottleneck,
//                 resources, reward, guardrails, why, cost, recalled, improved, elapsed
//   "winner"      the best recipe step by step, and the new program (docs/formats.md)
//   "refused"     recipe, why: an action that did not apply
//   others        what language models were asked and answered (docs/proposers.md)
//   "result"      last line: the best recipe, statistics, why the search stopped
//
// Lines are written as they happen, each by one write, so that a search that is killed leaves whole lines.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_REPORT_TRAJECTORY_H
#define OPTIML_REPORT_TRAJECTORY_H

#include "optiml/Search/Search.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>
#include <string>

namespace optiml {

nlohmann::json toJson(const EvaluationRecord &record);
/// Best recipe, times, statistics, stop reason, notes and the top list: also the summary that the store keeps.
nlohmann::json toJson(const SearchResult &result);

class Trajectory : public SearchObserver {
public:
  /// Creates the file (and its folder), or empties it.
  static llvm::Expected<std::unique_ptr<Trajectory>> create(const std::string &path, const nlohmann::json &about);
  ~Trajectory() override;
  const std::string &path() const { return file; }

  void evaluated(const EvaluationRecord &record) override;
  void refused(const Recipe &recipe, const std::string &why) override;
  /// Any other event: an object with an "event".
  void event(const nlohmann::json &line) { write(line); }
  /// Writes the last line. The error is that of the first write that failed.
  llvm::Error finish(const nlohmann::json &result);

private:
  Trajectory(std::string file, int descriptor) : file(std::move(file)), descriptor(descriptor) {}
  void write(const nlohmann::json &line);
  std::string file;
  int descriptor;
  int failure = 0; ///< errno of the first failed write; nothing is written after it
};

/// Passes everything on to several observers.
class ObserverList : public SearchObserver {
public:
  void add(SearchObserver *observer) { observers.push_back(observer); }
  void started(const Recipe &recipe, Fidelity fidelity) override;
  void evaluated(const EvaluationRecord &record) override;
  void refused(const Recipe &recipe, const std::string &why) override;

private:
  std::vector<SearchObserver *> observers;
};

} // namespace optiml

#endif
