//===- FuseInBlocks.h - rows of blocks --------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEINBLOCKS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEINBLOCKS_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Transforms/FuseKernels.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// How many rows there are: a polynomial, a quotient of two that is to be worked out before the launch, or as many as
/// the launch has blocks, or threads, along an axis.
struct RowCount {
  std::optional<Poly> rows, by;
  unsigned axis = 0;
  bool ofThreads = false;
  bool ofGrid() const { return !rows && !by; }
  std::string text(const KernelModel &model) const; ///< over the launch
  bool operator==(const RowCount &) const = default;
};

/// How the rows may lie in a launch, and how far apart the first elements of two rows are, or how many threads each
/// has.
struct RowGuess {
  RowCount count;
  Poly inner;
  bool operator==(const RowGuess &) const = default;
};
std::vector<RowGuess> guessesOf(const Kernel &kernel);

/// for (type at = threadIdx.x; at < upper; at += blockDim.x) body
StmtRef turnsOfThreads(const std::string &at, const Type &type, const ExprRef &upper, StmtRef body);
/// Of what bringToRows made: what a block does for its row. The innermost of the loops that stand for threads has a
/// thread for each turn. `most`: becomes at least its extent, where that is a constant. The loops are added to `all`.
std::vector<StmtRef> workOfBlock(const StmtRef &work, size_t loops, int64_t &most, std::set<const Stmt *> &all);

/// An access of a block to its row of an array, so many elements behind the row's first.
struct RowAccess {
  const Access *access = nullptr;
  Poly offset;
};

/// One of which is to be seen whether 0 <= offset < pitch.
struct CheckedAccess {
  RowAccess row;
  Poly pitch;
};

/// A kernel with the parameters of `kernel` and `int *outside`, into which it writes 1 where one of the accesses is
/// outside of its row. It does what decides over indices and nothing else. `ofRow`: axes along which the row differs.
/// NotApplicable where indices depend on memory.
llvm::Expected<std::shared_ptr<Kernel>> checkOfRows(const Kernel &kernel, const KernelModel &model,
                                                    const std::vector<CheckedAccess> &accesses, unsigned ofRow,
                                                    std::set<std::string> &taken);

/// A kernel that does the work of several launches, row by row.
struct RowKernel {
  std::shared_ptr<Kernel> kernel;
  RowBlocks blocks;
  std::string row;                           ///< the variable with a row's number
  ExprRef inRows;                            ///< row < rows
  std::set<std::string> dead, fresh;         ///< parameters, as those of FuseParts
  std::set<std::string> taken;               ///< names in use
  std::map<const Stmt *, unsigned> launchOf; ///< which launch a statement comes from
  std::set<unsigned> repeated;               ///< launches that stand in loops
  std::set<const Stmt *> loops;              ///< whose bodies run at least once, in some thread
  std::map<Stmt *, ExprRef> valueOf;         ///< declarations of arguments that change from turn to turn, and of what
  std::vector<std::pair<std::string, size_t>> boundsOf; ///< their names, and the first of two in RowBlocks::bounds

  /// What the row's number is.
  std::string index() const { return axisName(blocks.rowOfThread ? "globalIdx" : "blockIdx", 0); }
  /// A block's threads wait for each other before they go on to what another launch did.
  void meet(std::vector<StmtRef> &list) const {
    if (!blocks.rowOfThread)
      list.push_back(barrierStmt());
  }
  /// What is done for a row.
  std::vector<StmtRef> &list() const {
    return blocks.rowOfThread ? kernel->body->body[1]->body[0]->body : kernel->body->body;
  }
};
/// Shows that rows stay apart, and keeps them on the chip.
llvm::Expected<FusedLaunches> finishRows(RowKernel made, bool strictFloat);

/// Values that the steps of a row load again and again, and that are the same for all of it, are loaded once.
void holdRowValues(RowKernel &made);

} // namespace optiml

#endif
