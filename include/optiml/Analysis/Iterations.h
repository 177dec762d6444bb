//===- Iterations.h - what iterations of a loop share -----------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_ITERATIONS_H
#define OPTIML_ANALYSIS_ITERATIONS_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// The iterations of a counted loop, as one thread runs them, and the statements of the thread around it. The loop may
/// be part of other loops of the thread: an iteration is then all that has its number, in whatever turns of those.
///
/// Two accesses of one array meet where their indices are equal. Of the difference of the indices the parts with
/// parametric strides are split off (z * H * W + y * W + x meets another such place only where all three are equal,
/// when the others stay below W and H); whether what is left has a solution is asked of isl.
class Iterations {
public:
  /// `outermost`: the loop itself, or the outermost one around it.
  Iterations(const KernelModel &model, const Stmt &loop, const CountedLoop &counted, const Stmt &outermost);

  /// No iteration accesses what another one writes, and none what the thread writes elsewhere; nor does one write what
  /// the thread reads elsewhere. Atomic updates by the same operation commute. Records the conditions under which it
  /// holds.
  llvm::Error requireIndependent(KernelState &state) const;

private:
  /// Whether the accesses are never to one element. `apart`: of iterations so far apart at least; 0: of the same one
  /// too.
  bool neverMeet(KernelState &state, const Access &a, const Access &b, int64_t apart) const;
  bool differ(KernelState &state, const Poly &difference, std::vector<Poly> facts) const;
  bool differByDigits(KernelState &state, const Poly &difference, const std::vector<Poly> &facts) const;
  llvm::Error requireKnownMemory(KernelState &state, const std::vector<const Access *> &accesses) const;
  bool isOfIteration(const std::string &atom) const;
  /// In another iteration.
  Poly primed(Poly p) const;
  bool isLaunchConstant(const std::string &atom) const;

  const KernelModel &model;
  const Stmt &loop;
  CountedLoop counted;
  std::set<std::string> inside; ///< the loop's variable, and what its body declares
  std::set<std::string> turns;  ///< those, and what the loops around change or declare
};

} // namespace optiml

#endif
