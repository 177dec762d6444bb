//===- Explore.h - arguments that lead to code ------------------*- C++ -*-===//
//
// Which arguments of a program lead to the code that has not run? Each run tells how near every condition came to the
// outcome that it did not have (ModeConditions). The explorer changes one integer argument at a time, by what the
// distances say: search-based testing (McMinn, Search-based software test data generation, 2004) with the secant method
// in place of its alternating steps, as sizes enter conditions by a few multiplications, divisions and remainders.
// Where an outcome has been seen, it looks for arguments that lead to its edge: one element more or less would give the
// other.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_EXPLORE_H
#define OPTIML_LIB_EVALUATE_VERIFY_EXPLORE_H

#include "Coverage.h"
#include "optiml/Support/Deadline.h"
#include <functional>
#include <optional>

namespace optiml {

using Arguments = std::vector<std::string>;

/// What a run showed, such as an outcome of a condition, by numbers that are the same in every run of a program; and
/// how much that matters.
using Features = std::map<uint64_t, unsigned>;

/// One run of a program for what it covers.
struct ProbeResult {
  std::optional<ProgramCoverage> coverage; ///< nothing where it did not end well
  double seconds = 0;                      ///< that the processor took, whatever else the machine does
  bool timedOut = false;
};

class ArgumentExplorer {
public:
  struct ProbeOptions {
    double seconds = 3;    ///< limit
    bool hostOnly = false; ///< kernels are not run
  };
  /// Runs the program.
  using Probe = std::function<llvm::Expected<ProbeResult>(const Arguments &, const ProbeOptions &options)>;
  /// Conditions in functions with one of the hashes in `known` do not matter.
  ArgumentExplorer(Probe probe, std::set<uint64_t> known) : probe(std::move(probe)), known(std::move(known)) {}

  /// Runs the program with these, within the limit, and from then on with what differs from them.
  llvm::Error start(const Arguments &arguments, double seconds = 3);
  /// Until nothing is left to try, or the time is over. `thorough`: also by runs that take long.
  llvm::Error explore(const Deadline &deadline, bool thorough);

  /// Runs the program with the sizes behind those that it was started with, so that sizes are met that leave no block
  /// of threads unfinished.
  llvm::Error sweep(const Deadline &deadline);

  /// With as many arguments of `like` as still show all that matters most in a run with `arguments`.
  llvm::Expected<Arguments> alike(const Arguments &arguments, const Arguments &like);

  /// Arguments that together show all that was found, which `seen` does not hold, the best first. Quick runs come
  /// before slow ones.
  std::vector<Arguments> worthComparing(const Features &seen, size_t most) const;
  Features featuresOf(const Arguments &arguments) const;
  /// What the program took with these; infinity where its kernels did not run.
  double secondsOf(const Arguments &arguments) const;

private:
  struct Run {
    Arguments arguments;
    bool usable = false, hostOnly = false;
    double seconds = 0;  ///< that it took
    double cutAfter = 0; ///< the limit at which it was stopped last
    std::map<uint32_t, ConditionState> conditions;
    Features features;
  };
  enum class Aim {
    Outcome, ///< it has not been seen
    Edge,    ///< it has, but not its edge
    Beyond,  ///< it has, but only at its edge. Only of the host's: "n < most ? n : most"
    Always   ///< no other outcome in a run: it is noticed, not looked for
  };
  struct Goal {
    uint32_t condition;
    bool outcome;
    Aim aim;
    bool operator<(const Goal &other) const {
      return std::tie(condition, outcome, aim) < std::tie(other.condition, other.outcome, other.aim);
    }
  };
  /// The run that came nearest to an outcome.
  struct Nearest {
    size_t run;
    ConditionSide side;
  };

  llvm::Expected<const Run *> tryOut(const Arguments &arguments);
  std::optional<Goal> nextGoal() const;
  llvm::Error pursueAll(const Deadline &deadline);
  bool reached(const Goal &goal) const;
  /// Tries what differs from `from` in one argument. Whether the runs came nearer to the goal.
  llvm::Expected<bool> approach(const Goal &goal, const Run &from, const Deadline &deadline);
  /// Arguments that may lead to the goal from those of `from`, by changing the argument at `place`.
  llvm::Expected<std::vector<int64_t>> candidates(const Goal &goal, const Run &from, const ConditionSide &side,
                                                  size_t place);
  /// The change at `place` keeps the program from the goal's condition: further ones that may lead there again.
  llvm::Error restore(const Goal &goal, const Run &from, const Arguments &moved, size_t place);
  /// The arguments of `from` with all integers but the one at `place` as small as the goal's condition allows.
  llvm::Expected<Arguments> shrunk(const Goal &goal, const Run &from, size_t place);
  /// The distance of the operands in a run, with its sign.
  static std::optional<double> difference(const Run &run, const Goal &goal);
  /// Of the wanted outcome, or else of the other; not seen where the run did not meet the condition.
  static ConditionSide sideOf(const Run &run, const Goal &goal);
  const Nearest *nearestTo(const Goal &goal) const;

  Probe probe;
  std::set<uint64_t> known;
  std::vector<std::unique_ptr<Run>> all;
  std::map<Arguments, size_t> tried;
  std::map<std::pair<uint32_t, bool>, Nearest> nearest;
  std::set<std::pair<uint32_t, bool>> beyondEdge; ///< outcomes of the host's conditions that were had there
  std::map<uint32_t, size_t> firstToMeet;         ///< run, by condition
  std::map<uint32_t, size_t> quickest;            ///< run that met the condition
  std::map<Goal, size_t> exhausted;               ///< with the run that it was tried from
  std::set<std::pair<uint64_t, bool>> seenAt;     ///< outcomes that some instance of a template had, by place
  ProbeOptions how;
  bool limits = false; ///< pursues only launches of more blocks than there may be
};

/// "1000", "-3"; nothing where the whole argument is no integer.
std::optional<int64_t> integerIn(const std::string &argument);

} // namespace optiml

#endif
