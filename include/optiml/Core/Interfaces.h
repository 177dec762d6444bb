//===- Interfaces.h - what the search sees ----------------------*- C++ -*-===//
//
// Search knows nothing of Clang, transforms, emulator or GPU: only the interfaces and the plain values here.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_INTERFACES_H
#define OPTIML_CORE_INTERFACES_H

#include "optiml/Core/Action.h"
#include "optiml/Core/LegalActions.h"
#include "optiml/Core/Variant.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// Outcome classes of an evaluation (after Kernel Tuner's results schema).
enum class Verdict {
  Correct,
  NotApplicable,
  CompileError,
  RuntimeError,
  Timeout,
  OverLimit,
  WrongResult,
  Untested, ///< nothing differs, but some of its code ran in no comparison
  Predicted
};
const char *verdictName(Verdict verdict);
std::optional<Verdict> verdictFromName(llvm::StringRef text);

/// How deep an evaluation goes. Each includes the cheaper ones before it.
enum class Fidelity {
  Model,   ///< predicted time only, nothing is proven (Verdict::Predicted)
  Verified ///< compiled by nvcc, verified against the original, and scored
};

struct Timing {
  double seconds = 0;            ///< weighted sum over the workload's launches
  double baseline = 0;           ///< the same for the original
  bool predicted = true;         ///< from the model, not a clock
  std::vector<double> perLaunch; ///< seconds of each launch class, same order as the workload's
};

/// Seconds of some launches, by number, each with what it weighs; none where the time of one is not known.
std::optional<double> launchSeconds(const Timing &time, const std::map<size_t, double> &launches);

struct Resources {
  unsigned registers = 0, staticShared = 0, spillStores = 0, spillLoads = 0;
  double occupancy = 0; ///< resident warps / maximum
  /// Of several kernels: the most registers and static shared memory, all spills.
  void add(const Resources &other);
};

struct Measurement {
  Verdict verdict = Verdict::RuntimeError;
  Timing time;
  std::map<std::string, double> counters; ///< named metrics, e.g. "dram_bytes", "l1_cycles", "bottleneck.dram"
  std::string bottleneck;                 ///< the slowest pipe: "dram", "l2", "l1", "issue", "latency", "fp32", …
  Resources resources;
  double reward = 0;
  std::vector<std::string> guardrails; ///< guardrails broken, empty when clean
  std::string why;                     ///< the reason, when not Correct
  /// Untested: the kernels of which code ran in no comparison, as the changed program calls them. Not stored.
  std::vector<std::string> missedKernels;
  double cost = 0; ///< wall seconds this evaluation took
  /// Compared on the captured launches only, with a general tolerance: it is believed once Evaluator::withdrawn has had
  /// the time to object.
  bool provisional = false;
  bool correct() const { return verdict == Verdict::Correct; }
  /// It is right, as far as is known, and has a time.
  bool isUsable() const;
};
nlohmann::json toJson(const Measurement &measurement);
llvm::Expected<Measurement> measurementFromJson(const nlohmann::json &value);

/// A node of the search: a variant, reached by a recipe.
struct SearchState {
  std::shared_ptr<const Variant> variant;
  std::string key;                          ///< Variant::key
  LegalActions legal;                       ///< every legal action from here
  const Measurement *measurement = nullptr; ///< of this state, or null when it was never evaluated
  bool isSketch = false; ///< only a step on the way: it leaves blocks with one thread, and is not worth an evaluation
};

struct Proposal {
  Action action;
  double prior = 0; ///< relative weight, ≥ 0
  std::string reason;
};

/// One step of an opening line, resolved against the actions that are legal when its turn comes.
struct OpeningStep {
  std::string transform;
  /// Which sites: a glob over the part of the site name that follows the kernel ("" or "/k:A").
  std::string siteGlob = "*";
  /// Parameters to look for, best first. A value fits when it agrees on every parameter named. None fits: the site's
  /// own first value, or with `onlyPreferred` none.
  std::vector<Params> preferences;
  bool required = false;  ///< where it does not apply the line is dropped; otherwise the step is left out
  bool everySite = false; ///< apply it at every matching site (the first eight), not just the first
  bool onlyPreferred = false;
  bool inexact = false; ///< rounds otherwise than the original: where a line is wrong, it is tried without the step
};

/// A known-good recipe in general form, for one kernel.
struct OpeningLine {
  std::string name;
  std::vector<OpeningStep> steps;
  std::string kernel = {}; ///< the only one it is played on; empty: every one
};

/// Ranks actions. Called from the thread that searches, one call at a time and in an order that a seed repeats.
class Proposer {
public:
  virtual ~Proposer();
  /// At most `count` proposals, best first, all of them legal in `state`. Asked once for every state that the search
  /// goes on from, and again for one that became the best.
  virtual llvm::Expected<std::vector<Proposal>> propose(const SearchState &state, unsigned count) = 0;
  /// Lines worth trying on every kernel before anything else, best first.
  virtual std::vector<OpeningLine> openingBook(const SearchState &root) = 0;

  /// Recipes to evaluate before the tree grows further, whatever the priors say; asked again until there are none.
  /// Their actions need not be among the legal ones that states list (new kernel text is not), but the action space
  /// knows them. Each is answered by a call of observe() or refused() at least, unless the search ends first.
  virtual std::vector<Recipe> recipes() { return {}; }
  /// Tells of every finished evaluation, in order: the baseline first, also predictions and what was recalled.
  virtual void observe(const SearchState &state, const Measurement &measurement) {}
  /// Whether answers are still to come that the proposals to come will use. A search keeps a part of its budget for
  /// them.
  virtual bool awaitsAnswers() const { return false; }
  /// How many have come since they were asked for: then proposals differ from those before.
  virtual unsigned answersTaken() const { return 0; }
  /// Waits for one of them, at most so long. After that none may be awaited any more.
  virtual void takeAnswer(double /*seconds*/, const std::atomic<bool> * /*cancel*/) {}
  /// The last action of `recipe` does not apply, or what it leads to failed before it was evaluated.
  virtual void refused(const Recipe &recipe, const std::string &why) {}
};

/// Compiles, verifies and scores variants. Called from several threads at once.
class Evaluator {
public:
  virtual ~Evaluator();
  virtual Measurement evaluate(const Variant &variant, Fidelity fidelity) = 0;
  /// What has not begun to run by then may be given up: its answer is a failure, which the search does not keep.
  virtual void beginNothingAfter(std::chrono::steady_clock::time_point) {}
  /// What a closer look, beside the search, has found of variants whose measurements were provisional: by key, those
  /// that are wrong after all, each told once.
  virtual std::map<std::string, Measurement> withdrawn() { return {}; }
};

/// What was evaluated before, in this search or an earlier one with the same context. Called from one thread at a time.
class EvaluationCache {
public:
  virtual ~EvaluationCache();
  virtual std::optional<Measurement> recall(const std::string &variantKey, Fidelity fidelity) = 0;
  virtual void remember(const std::string &variantKey, Fidelity fidelity, const Recipe &recipe,
                        const Measurement &measurement) = 0;
};

/// The legal actions and how to take one. Called from several threads at once.
class ActionSpace {
public:
  virtual ~ActionSpace();
  virtual llvm::Expected<SearchState> root() = 0;
  /// NotApplicable is an ordinary answer.
  virtual llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) = 0;
};

/// A recipe that may be evaluated next.
struct Prospect {
  Recipe recipe;
  Recipe basis;      ///< the line or variant that it is a variation of; or itself
  unsigned rank = 0; ///< of that line in the opening book: earlier ones promise more
};

/// Knows how recipes fared before, on kernels like these and in this search. Called from the thread that searches.
class Outlook {
public:
  virtual ~Outlook() = default;
  /// Whether there is anything to go by; else the others have nothing to say.
  virtual bool knowsAnything() const = 0;
  /// The numbers of at most `most` prospects that are worth an evaluation each, in the order in which to begin them.
  virtual std::vector<size_t> choose(const std::vector<Prospect> &prospects, size_t most) const = 0;
  /// The recipe that led to `end`, with its details (parameters, steps that only trim) as they did best elsewhere.
  virtual Recipe tuned(const SearchState &end) const = 0;
  /// Recipes that differ from it by one detail which was worth something elsewhere, the most promising first.
  virtual std::vector<Recipe> variations(const SearchState &end) const = 0;
};

} // namespace optiml

#endif
