//===- Strategists.h - several ways to think, and who is heard --*- C++ -*-===//
//
// A mixture of thoughts: each strategist asks a model with instructions and evidence of its own. The gate gives each a
// weight:
//
//     weight(s) = table(s, bottleneck) · fare(s)
//
// where table is how much the strategist has to say against the diagnosed bottleneck (Strategists.cpp), and fare, 1 at
// first, is how its proposals did in this search. Every evaluated variant that contains an action which s proposed
// updates it by multiplicative weights (Freund and Schapire's Hedge):
//
//     fare(s) <- clamp(fare(s) · exp(η · (outcome - 1/2)), 1/5, 5),   η = 1/2
//     outcome = clamp(1/2 + log2(time where it was proposed / time of the variant) / 2, 0, 1), and 0 for a failure
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_STRATEGISTS_H
#define OPTIML_PROPOSE_STRATEGISTS_H

#include "optiml/Core/Interfaces.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>
#include <string>
#include <vector>

namespace optiml {

struct Strategist {
  const char *name;        ///< "memory"; part of the purpose of its questions, "propose/memory"
  const char *instruction; ///< what it looks at
  const char *evidence;    ///< which counters it should weigh first
};

/// Memory hierarchy, parallel mapping, instruction level, numerics, algorithm.
llvm::ArrayRef<Strategist> strategists();
/// The one who thinks of everything: who is asked without a mixture.
const Strategist &generalist();

class Gate {
public:
  /// How much `strategist` is heard against `bottleneck`.
  double weight(const Strategist &strategist, llvm::StringRef bottleneck) const;
  /// The heaviest against the bottleneck, at most `most` and none below a tenth of all weight; weights sum to 1. With
  /// `other`, a second opinion on the bottleneck, its weights count for `otherShare`.
  std::vector<std::pair<const Strategist *, double>> choose(llvm::StringRef bottleneck, unsigned most,
                                                            llvm::StringRef other = "", double otherShare = 0) const;
  /// A variant with a proposal of the strategist was evaluated: outcome from 0 to 1.
  void update(const std::string &strategist, double outcome);
  double fare(const std::string &strategist) const;
  /// The outcome of the rule above.
  static double outcomeOf(const Measurement &measurement, double secondsBefore);

private:
  std::map<std::string, double> fares;
};

} // namespace optiml

#endif
