//===- Search.h - looking for the best recipe -------------------*- C++ -*-===//
//
// Monte-Carlo tree search over recipes, seen only through ActionSpace, Proposer and Evaluator.
//
//  - Nodes are variants (SearchState::key), so that recipes with equal outcomes share one: the tree is a DAG.
//    Visits are counted on edges. An edge is chosen in two levels: first the transform and its site, then the parameter
//    values in the order in which a cheap prediction (Fidelity::Model) ranks them.
//  - Selection is PUCT (Rosin 2011; Silver et al. 2017):  Q + c · P · sqrt(N) / (1 + n),  with Q the best reward
//    confirmed below the edge, normalized to the range of rewards seen in this search, P the proposer's prior.
//    Progressive widening (Coulom 2007) opens choices in the order of their priors: about sqrt(visits) of them.
//  - Some expansions go on for a few more steps before they are evaluated, so that rewrites which pay only together are
//    found although each alone looks worse.
//  - Before the tree grows, the opening book's lines are tried on every kernel, and the best of each kernel together.
//  - Evaluations are issued in batches of a constant size and folded in in the order of issue: on a budget of
//    evaluations a seed gives the same trajectory whatever the number of jobs. Where times are measured no run repeats
//    anyway: there nobody waits for the slowest (SearchSettings::flows).
//  - Only a variant that promises to be the best is worth the dear part of an evaluation
//  (SearchSettings::verifyWithin);
//    the others keep their prediction, which guides the tree and is never believed.
//  - No variant is evaluated twice, in this search or, with an EvaluationCache, in any with the same context.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_SEARCH_SEARCH_H
#define OPTIML_SEARCH_SEARCH_H

#include "optiml/Core/Interfaces.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace optiml {

enum class Strategy { Mcts, Random, Greedy, Beam };
const char *strategyName(Strategy strategy);
std::optional<Strategy> strategyFromName(llvm::StringRef name);

struct SearchSettings {
  Strategy strategy = Strategy::Mcts;
  unsigned evaluations = 200; ///< budget of evaluations, the baseline's not counted; 0: none
  double seconds = 120;       ///< budget of wall time; 0: none
  uint64_t seed = 1;
  unsigned jobs = 1;          ///< threads that apply and evaluate
  unsigned batch = 8;         ///< evaluations issued together; part of what makes a run repeatable
  bool flows = false;         ///< evaluations are folded in as they finish, and none is waited for: no seed repeats it
  unsigned firstTogether = 1; ///< opening lines that are evaluated at once, before the first answer
  unsigned screen = 4;        ///< parameter values of one choice that are ranked by Fidelity::Model; below 2: none
  double verifyWithin = 0;    ///< verify what is predicted to take at most this times the best so far; 0: everything
  unsigned beamWidth = 4;     ///< variants that a beam search goes on from at every depth
  unsigned maxDepth = 24;     ///< longest recipe, for each kernel
  double exploration = 1.2;   ///< c of PUCT
  double rolloutChance = 0.4; ///< that an expansion goes on for up to five more steps before it is evaluated
  std::vector<Recipe> first;  ///< to evaluate before anything else
  bool openingBook = true;
  const Outlook *outlook = nullptr; ///< orders the opening book, and leaves out what should be far slower than the best
  /// Which of Timing::perLaunch are a kernel's, and what each weighs, by the kernel's name in sites. Where that is
  /// known, what did best on each kernel is put together.
  std::map<std::string, std::map<size_t, double>> launches = {};
  double margin = 1.0;    ///< the original stays unless a variant is at least this much faster
  double roofline = 0.93; ///< stop when counter "roofline" of the best reaches this after the opening; 0: never
  double simplerWithin =
      1.0;          ///< of variants within this factor of the best time, the one with the shortest recipe wins
  unsigned top = 5; ///< length of SearchResult::top
  const std::atomic<bool> *cancel = nullptr; ///< set (by Ctrl-C): stop, keep the best
  /// Everything that decides the outcome on a budget of evaluations, as text: part of a stored search's key.
  std::string str() const;
};

/// One finished evaluation: verified, or predicted to be too slow for that (Verdict::Predicted).
struct EvaluationRecord {
  unsigned number = 0; ///< 0: the original
  Recipe recipe;
  std::string key;
  Measurement measurement;
  bool recalled = false; ///< from the EvaluationCache
  bool improved = false; ///< the best so far
  double elapsed = 0;    ///< seconds since the search began
};

enum class StopReason { Evaluations, Seconds, Cancelled, Exhausted, Roofline };
const char *stopReasonText(StopReason reason);

struct SearchStatistics {
  unsigned evaluations = 0; ///< the baseline's not counted
  unsigned recalled = 0;    ///< of these, from memory
  unsigned correct = 0, failed = 0;
  unsigned predicted = 0; ///< of the evaluations, those that were not worth verifying
  unsigned modelled = 0;  ///< evaluations with Fidelity::Model
  unsigned applied = 0, notApplicable = 0;
  unsigned transpositions = 0; ///< recipes that led to a variant already known
  unsigned variants = 0;
  double seconds = 0;
};

/// A variant with its recipe and measurement.
struct Candidate {
  std::shared_ptr<const Variant> variant;
  Recipe recipe;
  std::string key;
  Measurement measurement;
  double speedup() const {
    return measurement.time.seconds > 0 ? measurement.time.baseline / measurement.time.seconds : 0;
  }
};

struct SearchResult {
  Candidate baseline;
  Candidate best;             ///< the baseline when nothing better was confirmed
  bool improved = false;      ///< best is not the baseline
  std::vector<Candidate> top; ///< correct, clean of guardrails, fastest first, the baseline excluded
  SearchStatistics statistics;
  StopReason stop = StopReason::Exhausted;
  double unproven = 0; ///< predicted speed-up of the fastest variant that there was no time to verify; 0: none
  std::vector<std::string> notes; ///< what a user should know (a proposer that failed, …)
};

/// Follows a search. `started` comes from worker threads, one at a time; the others from the thread that searches.
class SearchObserver {
public:
  virtual ~SearchObserver();
  virtual void started(const Recipe &recipe, Fidelity fidelity) {}
  virtual void evaluated(const EvaluationRecord &record) {}
  /// An action that did not apply, or a variant that failed already in the model: with the reason.
  virtual void refused(const Recipe &recipe, const std::string &why) {}
};

/// An error means that there is nothing to search from: the action space or the baseline's evaluation failed.
llvm::Expected<SearchResult> runSearch(ActionSpace &space, Proposer &proposer, Evaluator &evaluator,
                                       const SearchSettings &settings, EvaluationCache *memory = nullptr,
                                       SearchObserver *observer = nullptr);

} // namespace optiml

#endif
