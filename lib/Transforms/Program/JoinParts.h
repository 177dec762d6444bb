//===- JoinParts.h - the bodies of several kernels, as one ------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_JOINPARTS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_JOINPARTS_H

#include "FuseKernels.h"
#include <functional>

namespace optiml {

/// Appends kernels' bodies to one, in which what they have in common stands once: indices that are computed alike, and
/// guards and grid-stride loops that say the same.
class PartJoiner {
public:
  /// `fused`: has all parameters; its body grows. `mayAsk`: whether that a number is 0 may become a condition.
  PartJoiner(std::shared_ptr<Kernel> fused, std::function<bool(const Poly &)> mayAsk)
      : fused(std::move(fused)), mayAsk(std::move(mayAsk)) {}

  /// `part`: with names of its own.
  void add(Kernel &part, unsigned index);

  PartOf partOf;                     ///< of all statements, by the index of their part
  std::vector<Condition> conditions; ///< under which guards that were taken for equal are
  StrideLoops strides;               ///< of the fused kernel, where these are hidden

private:
  std::shared_ptr<Kernel> fused;
  std::function<bool(const Poly &)> mayAsk;
  unsigned current = 0;         ///< the part that is appended
  std::vector<StmtRef> alive;   ///< statements are known by their addresses, also those that are left out
  std::set<const Stmt *> plain; ///< declarations of values that depend on arguments and indices alone

  /// Whether two conditions are about indices and arguments alone, so that nothing under them changes them, and say the
  /// same. Bounds that arguments give in different ways ("rows * cols" and "n") are taken for equal, which becomes a
  /// condition.
  bool sameGuard(const ExprRef &a, const ExprRef &b);
  /// Two grid-stride loops over the same elements.
  bool sameLoop(const Stmt &a, const Stmt &b);
  /// What a condition asks beyond the guard, which it asks first: c of "guard && c"; null: it is another condition.
  ExprRef restBehind(const ExprRef &guard, const ExprRef &condition);
  /// Loops of one kernel stay apart: what the second needs of the first is not looked at.
  bool holdsOwn(const Stmt &last);
  /// Whether joinWith would make one of them.
  bool belongsTo(const Stmt &last, const Stmt &s);
  /// Makes one of the last statement and `s`, which follows it and runs for the same elements; false: it does not.
  bool joinWith(Stmt &last, Stmt &s);
  /// The declaration at `at` stands between the last statement and one that is joined with it, and may stand before
  /// both.
  bool movesUp(const Stmt &into, const std::vector<StmtRef> &list, size_t at);
  /// Appends a part's statements to what is there.
  void append(Stmt &into, std::vector<StmtRef> list);
};

} // namespace optiml

#endif
