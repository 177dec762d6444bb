//===- Reduction.h - sums and extremes over threads -------------*- C++ -*-===//
//
// A loop that folds values into a scalar ("s += x", "m = fmaxf(m, x)", "if (x > m) m = x") may be run by several
// threads, each with a partial result, which are combined afterwards. Here is what recognizes such scalars, and what
// combines them over a warp or a block.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_REDUCTION_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_REDUCTION_H

#include "optiml/Analysis/Tree.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// fmaxf, std::min, …
bool isMinMax(const std::string &callee);

/// An associative and commutative way to fold a value into a variable.
struct Fold {
  enum class Kind {
    Operator, ///< v = v op x: + * & | ^
    Call,     ///< v = f(v, x): fmaxf, min, …
    Compare   ///< if (x op v) v = x: < <= > >=
  };
  Kind kind = Kind::Operator;
  std::string op; ///< operator or function
  bool operator==(const Fold &other) const { return kind == other.kind && op == other.op; }
  /// Folding the same value twice changes nothing.
  bool isIdempotent() const { return kind != Kind::Operator || op == "&" || op == "|"; }
  /// v with x folded in; `x` is evaluated more than once by a Compare.
  StmtRef into(const ExprRef &v, const ExprRef &x) const;
  /// What changes nothing when folded in (not for idempotent folds that have none).
  ExprRef identity(const Type &type) const;
};

/// A statement that folds `value` into a scalar.
struct FoldedValue {
  std::string variable;
  Type type;
  Fold fold;
  ExprRef value;
};
std::optional<FoldedValue> asFold(const Stmt &s);

/// A scalar that a loop does nothing with but fold values into it.
struct Reduction {
  std::string variable;
  Type type;
  Fold fold;
  /// "if (x > m) { m = x; at = j; }": what is kept beside an extreme, of its first place. `index` is one of these,
  /// which decides among equal values.
  std::vector<std::pair<std::string, Type>> kept = {};
  std::string index = {};
  /// Of an online softmax: the function in whose scale `kept`, one sum, follows the extreme (JointUpdates.h). Else
  /// empty.
  std::string exponential = {};
  /// The mean of JointUpdates.h; `kept` are the sum of squares and the count.
  bool isMean = false;
  bool greaterFirst = false; ///< of equal values the one with the greater `index` stays, else the lesser
  std::string flag = {};     ///< one of `kept`, which is 0 until there is a value
  bool startsUnset = false;  ///< as long as it is 0 before the loop
  ExprRef unordered = {};    ///< as long as this, which every iteration computes, is a number
  /// Sums beside it, of which all threads but the first start at nothing.
  bool keepsSums() const { return isMean || !exponential.empty(); }
  bool keepsPlace() const { return !kept.empty(); }
};

/// The scalars from outside `loop` that it assigns, all of them reductions; NotApplicable with the first that is none.
/// With `strictFloat`, floating-point ones are refused, as their order would change, but for extremes with their first
/// place, which are the same in any order. `explainedArrays` are assigned for reasons that the caller knows. With
/// `runsAgain` the caller sees to what is not ordered.
llvm::Expected<std::vector<Reduction>>
findReductions(Stmt &loop, bool strictFloat, const std::set<std::string> &explainedArrays = {}, bool runsAgain = false);

/// All that the loop assigns is a reduction, where sums may change their order.
bool onlyReduces(Stmt &loop);

/// "float s = 0;" right before the loop: every thread starts at nothing already.
bool startsAtIdentity(const Stmt &s, const Reduction &r);

/// How many threads hold partial results: lanes of a warp side by side (a power of two of them, which is the block's
/// extent along x where it is less than 32), or a block of `threads` (a multiple of 32).
struct ThreadGroup {
  int64_t threads = 32;
  std::array<int64_t, 2> extents = {0, 0}; ///< along x and y, of a block that has more axes than x
  /// Of a whole block, which may have several axes.
  static ThreadGroup ofBlock(const std::array<int64_t, 3> &shape);
  /// A thread's number among them: lanes of a warp follow one another.
  ExprRef rank() const;
  /// Whether a thread is the first.
  ExprRef isFirst() const;
  bool isWithinWarp() const { return threads <= 32; }
  /// The lanes of the group, which meet in shuffles: the warp's other groups may be elsewhere.
  ExprRef mask() const;
  /// For the first shuffle of a butterfly.
  int64_t firstOffset() const { return isWithinWarp() ? threads / 2 : 16; }
};

/// Makes statements that combine partial results.
class Combiner {
public:
  /// New names are chosen beside `taken`, and added to it.
  Combiner(ThreadGroup group, std::set<std::string> &taken);
  /// After these statements every thread of the group holds the combination of all its threads' values in the variable.
  /// For a block they hold a barrier; before they run again there must be another one.
  std::vector<StmtRef> combine(const Reduction &reduction);

private:
  StmtRef better(const Reduction &reduction, const std::vector<ExprRef> &values);
  std::vector<StmtRef> combineWithPlace(const Reduction &reduction);
  ThreadGroup group;
  std::set<std::string> &taken;
  std::string offset, warp; ///< loop variables, the same in all combinations
};

/// __syncthreads(), or __syncwarp() within a warp.
StmtRef groupBarrier(const ThreadGroup &group);

/// "float s = 0; for (…) s += x; atomicAdd(out, s);" becomes "for (…) atomicAdd(out, x);" where nothing but such
/// updates follows the loop, so that its iterations carry no sum any more and other threads can do them. Old values of
/// the updates are not used, and the loop reads nothing of what decides the place. Floating-point sums change their
/// order: not with `strictFloat`.
void sinkUpdates(Kernel &kernel, bool strictFloat);

} // namespace optiml

#endif
