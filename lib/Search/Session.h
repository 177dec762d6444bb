//===- Session.h - what every search strategy shares ------------*- C++ -*-===//
//
// Budgets, threads, the graph, and the two dear operations: applying actions and evaluating variants. Work is done in
// parallel and folded in in the order in which it was asked for.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_SEARCH_SESSION_H
#define OPTIML_LIB_SEARCH_SESSION_H

#include "Graph.h"
#include "optiml/Search/Search.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <random>

namespace optiml::search {

/// An edge to follow: `from` by `action`.
struct Application {
  Node *from;
  Action action;
  Node *to = nullptr;   ///< filled in; null when it did not apply or there was no time
  bool refused = false; ///< it does not apply (as against: there was no time)
};

/// A way through the graph: node, then the edge taken.
struct PathStep {
  Node *node;
  SiteEdge *site;
  ValueEdge *value;
};
using Path = std::vector<PathStep>;

/// A free walk of several steps from a state; a pure function of it, so that walks can run beside each other.
struct Walk {
  /// The next action, or nothing to stop. Called again with `refused` set when the last one did not apply.
  using Next = std::function<std::optional<Action>(const SearchState &, bool refused)>;
  Node *from;
  Next next;
  std::vector<std::pair<Action, SearchState>> steps; ///< filled in
};

/// A walk whose end is evaluated; one without a `next` stays where it begins.
struct Job {
  Walk walk;
  Path path = {}; ///< from the root to where it begins
  /// Whether the end is worth it. From any thread; null: it is.
  std::function<bool(const Walk &)> isWanted = nullptr;
  /// Told at last of the end, measured or not; null: it was not wanted, or there was no time.
  std::function<void(Node *end)> done = nullptr;
};

class Flow;

class Session {
public:
  Session(ActionSpace &space, Proposer &proposer, Evaluator &evaluator, const SearchSettings &settings,
          EvaluationCache *memory, SearchObserver *observer);
  ~Session();

  /// Sets up the root and evaluates the baseline.
  llvm::Error begin();
  /// Gives the place of the best to a variant with a shorter recipe that is as good as equal.
  void preferSimpler();
  SearchResult finish(StopReason stop);

  /// Why the search must end now, if it must.
  std::optional<StopReason> stopReason() const;
  double elapsed() const; ///< seconds since the search began
  /// Waits for an answer that the proposer awaits. False: there is none.
  bool takeAnswer();
  /// Evaluations that may still be issued, at most `wanted`.
  unsigned allowance(unsigned wanted) const;

  /// Evaluates the ends of these, and counts visits. In flow it returns as soon as there is room for more.
  void run(std::vector<Job> jobs);
  /// How many evaluations are best issued now. In flow: waits for room.
  unsigned room();
  bool isFlowing() const { return flow != nullptr; }
  /// In flow: waits for an answer, or for all of them. False: none is under way.
  bool awaitOne();
  void awaitAll();

  void applyAll(std::vector<Application> &applications);
  void walkAll(std::vector<Walk> &walks);
  /// Enters a walk's states into the graph; the path to its end, as far as every step is legal where it stands.
  Path enter(const Walk &walk, Node *&end);
  /// Predicts those of which nothing is known.
  /// Begins none but the first when so many seconds of the search are over.
  void model(const std::vector<Node *> &nodes, double until = HUGE_VAL);
  /// Of a sketch, instead of an evaluation.
  void standIn(Node &node);
  /// Evaluates those that were not evaluated before: verifies what is worth it. They count against the budget.
  void evaluate(const std::vector<Node *> &nodes);
  /// Counts a visit on every edge of the path and raises the best rewards along it.
  void backUp(const Path &path, Node *end);
  void expand(Node &node);
  /// Evaluates the recipes that the proposer wants tried now.
  void tryRecipes();
  /// Evaluates these, and tells the proposer.
  void tryAll(const std::vector<Recipe> &recipes);
  /// Those that were faster than the original, until verifying showed that no comparison reached all of their code;
  /// since the last call.
  std::vector<const Node *> takeUntested() { return std::exchange(untested, {}); }
  /// Those that were found to be wrong, since the last call.
  std::vector<const Node *> takeWrong() { return std::exchange(wrong, {}); }
  /// Those that are faster than the original but break a guardrail, since the last call.
  std::vector<const Node *> takeGuarded() { return std::exchange(guarded, {}); }
  /// Has the proposer look again at a best that was expanded before it was known to be the best.
  void reconsiderBest();

  /// A uniform integer below n; the same on every platform.
  unsigned pick(unsigned n) { return unsigned(random() % n); }
  double chance() { return double(random() >> 11) * 0x1p-53; }

  const SearchSettings &settings;
  Graph graph;
  Node *root = nullptr;
  /// Those that the root's actions are on, in their order.
  std::vector<std::string> kernels() const;
  /// The longest recipe: each kernel has its share.
  size_t mostActions = 0;
  Node *best = nullptr;           ///< fastest correct and clean variant so far
  double lowest = 0, highest = 0; ///< rewards seen, for normalization
  SearchStatistics statistics;
  std::vector<std::string> notes;
  std::function<void(Node &)> evaluated; ///< told of every variant that was measured; may be null

  Proposer &book() { return proposer; }

private:
  friend class Flow;
  /// Takes the walk's steps; `depth` are behind it. In any thread.
  void takeSteps(Walk &walk, SearchState state, size_t depth) const;
  /// In any thread. Nothing: there was no time.
  std::optional<Measurement> measure(const SearchState &state, const Recipe &recipe, Fidelity fidelity, bool &recalled);
  void finishJob(const Job &job, Node *end, const Path &walked);
  /// The first always, the others while fewer than `until` seconds of the search are over.
  void parallelFor(size_t count, const std::function<void(size_t)> &body, double until = HUGE_VAL);
  /// All that may be done, found out by all threads while there is time.
  void findActions(const LegalActions &legal);
  bool outOfTime() const;
  /// Of evaluations, while answers are awaited: the rest is theirs. 0: there is none.
  unsigned evaluationLimit() const;
  void evaluateAt(const std::vector<Node *> &nodes, Fidelity fidelity,
                  llvm::function_ref<void(Node &, Measurement, bool recalled)> done, double until = HUGE_VAL);
  /// What the evaluator no longer stands by has failed.
  void takeBack();
  void foldModel(Node &node, Measurement measurement);
  /// Whether a predicted variant may be worth a proof where the best takes so many seconds.
  bool isPromising(const Node &node, double seconds) const;
  using Verifications = std::map<Node *, std::pair<Measurement, bool>>; ///< and whether they were recalled
  /// Nothing is folded in yet; `fastest` is the time of the best that is known, before and after.
  Verifications verifyPromising(std::vector<Node *> nodes, double &fastest);
  void fold(Node &node, Measurement measurement, bool recalled);
  bool better(const Node &a, const Node &b) const;
  std::vector<Proposal> proposalsFor(Node &node);
  Node *follow(const Recipe &recipe, Path &path);
  void tellRefused(const Recipe &recipe, const std::string &why);

  ActionSpace &space;
  Proposer &proposer;
  Evaluator &evaluator;
  EvaluationCache *memory;
  SearchObserver *observer;
  std::mutex callbackMutex; ///< of calls into observer and memory from several threads
  std::mt19937_64 random;
  unsigned answersSeen = 0; ///< Proposer::answersTaken
  std::vector<const Node *> untested, wrong, guarded;
  Node *considered = nullptr; ///< the best that the proposer was last asked about as such
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::unique_ptr<Flow> flow; ///< null: in batches
};

/// One way to search. Stateful; belongs to one session.
class Searcher {
public:
  virtual ~Searcher() = default;
  /// Issues one batch of at most `limit` evaluations. False: nothing is left to try.
  virtual bool step(unsigned limit) = 0;
};

std::unique_ptr<Searcher> makeMcts(Session &session);
std::unique_ptr<Searcher> makeRandom(Session &session);
std::unique_ptr<Searcher> makeGreedy(Session &session);
std::unique_ptr<Searcher> makeBeam(Session &session);

} // namespace optiml::search

#endif
