//===- WindowSums.h - numbers that are folded over a window -----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_MAPPING_WINDOWSUMS_H
#define OPTIML_LIB_TRANSFORMS_MAPPING_WINDOWSUMS_H

#include "../Cooperative/Reduction.h"
#include "../ThreadMapping.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/Support/Error.h"
#include <map>
#include <set>

namespace optiml {

/// A loop that only adds numbers, or takes extremes, over a window that moves with an output's index along one axis:
/// what an iteration folds in depends on its counter and on other axes.
class WindowSums {
public:
  struct Sum {
    std::string name;
    Type type;
    ExprRef slid;  ///< in the window; of an unsigned type, or of the sum's own, which is floating-point or an extreme
    Fold fold;     ///< of an extreme; else "+"
    ExprRef start; ///< of an extreme: the constant that it begins with, which may be folded in again; else null
    bool canShrink() const { return !type.isFloat() && !start; } ///< what leaves the window can be taken out
  };
  /// Of a kernel in terms of global indices. New names are made from `taken`.
  WindowSums(KernelState &state, Kernel &kernel, const KernelModel &model, Stmt &loop, unsigned axis,
             std::set<std::string> &taken);
  bool takesFloats = false;   ///< floating-point numbers are found, too
  bool takesExtremes = false; ///< extremes are
  /// Fills in what follows, and changes a counter that is relative to the output into an absolute one. What the kernel
  /// writes does not overlap what the loop reads (a condition in the state). NotApplicable says why it is no such loop.
  llvm::Error find();
  /// The same of a loop within another one, about whose arrays is asked there.
  llvm::Error findInner();
  /// for (counter = from; counter < to; ++counter) what enters the window, or leaves it.
  StmtRef part(bool enters, const ExprRef &from, const ExprRef &to);
  bool follows(const ExprRef &e) const;
  /// The window of the output before, [first, end), and of this one, [from, to): variables with new names.
  struct Ends {
    ExprRef first, end, from, to;
    std::vector<StmtRef> declarations() const; ///< of the former, before the first output: empty
    ExprRef startsAnew() const;                ///< it does not move forward, or does not overlap the one before
    std::vector<StmtRef> setAnew() const;      ///< the one before is empty then
    std::vector<StmtRef> moved() const;        ///< this one is the one before the next
  };
  Ends ends() const;
  /// The most iterations that a window has, where that is a constant.
  std::optional<int64_t> width() const;

  Stmt &loop;
  CountedLoop counted; ///< its counter is absolute
  std::vector<Sum> sums;

private:
  void findFollowers();
  ExprRef absolute(const ExprRef &e) const;
  llvm::Error makeAbsolute();
  llvm::Error findSums();
  std::optional<Sum> extremeIn(const Stmt &s) const;

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  const std::string index;
  const unsigned axis;
  std::set<std::string> &taken;
  StmtRef original;                ///< what has become another, and the model still looks at
  std::set<std::string> followers; ///< names whose values depend on the index
};

/// A thread takes so many neighbouring outputs along the axis.
std::array<CopyAxis, 3> neighbouringOutputs(unsigned axis, int64_t count);

} // namespace optiml

#endif
