//===- KnownConditions.h - conditions that are known where they stand -----===//
#ifndef OPTIML_ANALYSIS_KNOWNCONDITIONS_H
#define OPTIML_ANALYSIS_KNOWNCONDITIONS_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// Whether `p` >= 0 follows from facts >= 0.
bool follows(const Poly &p, std::vector<Poly> facts);

/// Relations between parameters ("rowsA >= rowsC") that hold for the captured launches, and can be conditions of the
/// kernel.
class Assumptions {
public:
  Assumptions(const KernelState &state, const KernelModel &model) : hints(state.hints), model(model) {}
  /// `p` >= 0 follows from one of the facts and something that may be assumed, which it now is.
  bool complete(const Poly &p, const std::vector<Poly> &facts);
  /// Records what was assumed.
  void record(KernelState &state) const;

private:
  const LaunchHints &hints;
  const KernelModel &model;
  std::set<std::string> made;
};

/// What `condition` is where the facts hold, if that can be told; `assume`, when given, may help.
std::optional<bool> truth(const KernelModel &model, const ExprRef &condition, const std::vector<Poly> &facts,
                          Assumptions *assume = nullptr);

/// `e` where the facts hold: without conditions that are known, and without what they leave out.
ExprRef simplified(const KernelModel &model, const ExprRef &e, const std::vector<Poly> &facts,
                   Assumptions *assume = nullptr);
/// The same for all that is computed in the kernel, guards and loops around it being known. Conditions in `state` may
/// help.
void simplifyConditions(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &block);

/// Where the kernel ends with `if (c) { … }`, what stands before it and has no effect but on this goes into it.
void sinkUnderLastGuard(Kernel &kernel);

} // namespace optiml

#endif
