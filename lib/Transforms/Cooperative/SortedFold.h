//===- SortedFold.h - the k best values, over threads -----------*- C++ -*-===//
//
// A loop that inserts values into a small sorted array, where they drop what is last, keeps the k largest (or smallest)
// of them. Several threads may run it, each with an array of its own, which are merged afterwards. Here is what
// recognizes such arrays, and what inserts and merges without branches and with constant indices, so that arrays stay
// in registers.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_SORTEDFOLD_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_SORTEDFOLD_H

#include "Reduction.h"
#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// A local array of which a loop does nothing but insert values into its first `count` elements, sorted.
struct SortedFold {
  struct Insertion {
    Stmt *stmt;
    ExprRef value, place; ///< place: what comes into `places`, null without
  };
  /// An array of what belongs to each value: a number that grows from one iteration to the next, so that of equal
  /// values the one with the lesser number comes first.
  struct Places {
    std::string array;
    Type type;
    Stmt *declaration = nullptr;
  };
  std::string array;
  Type type; ///< of an element
  std::optional<Places> places;
  bool descending = true; ///< the largest values, else the smallest
  Poly count;             ///< how many values are kept
  Stmt *declaration = nullptr;
  std::vector<Stmt *> fills; ///< the loops before that give all `count` elements one value
  std::vector<Insertion> insertions;
  std::vector<std::string> arrays() const { return places ? std::vector{array, places->array} : std::vector{array}; }
  int64_t extent() const { return *constantValue(declaration->dims[0]); }
};

/// More elements than this do not fit into a thread's registers beside everything else.
constexpr int64_t mostSorted = 32;

/// The local arrays from outside `loop` that it keeps sorted, with at most `most` entries. `before`: the statements
/// before the loop in its list, where such an array is filled. An array that is used in any other way is not among
/// them. The statements of an insertion may be put into a block.
std::vector<SortedFold> findSortedFolds(Kernel &kernel, const KernelModel &model, Stmt &loop,
                                        const std::vector<StmtRef> &before, int64_t most);

/// How many values the arrays keep that some loop of the kernel keeps sorted, whatever else is done with them.
std::vector<Poly> sortedCounts(const Kernel &kernel, const KernelModel &model);

/// The least power of two, at least 2, that is not less than `n`.
int64_t sortedSize(int64_t n);

/// Rewrites a sorted fold to arrays of `size` elements (a power of two), of which the first `count` are as before.
class SortedCombiner {
public:
  SortedCombiner(SortedFold fold, int64_t size, ThreadGroup group, std::set<std::string> &taken);
  /// Every element exists and is filled; values are inserted without branches. `retired` keeps what is taken out of the
  /// tree.
  void rewriteThread(Kernel &kernel, std::vector<StmtRef> &retired);
  /// Statements for before `loop`, which is shared out: a pass over its values finds one than which none of the best is
  /// worse, so that few are inserted. Of a fold with one insertion, before rewriteThread().
  std::vector<StmtRef> filter(const StmtRef &loop);
  /// After these statements every thread of the group has the best of all its threads' values. For a block they hold a
  /// barrier; before they run again there must be another one.
  std::vector<StmtRef> combine();
  /// Declares `name` with the value of element threadIdx.x of one of the arrays, for threads that have one.
  std::vector<StmtRef> ownElement(const std::string &array, const std::string &name);

private:
  ExprRef element(const ExprRef &index) const { return subscript(var(fold.array, fold.type), index, fold.type); }
  ExprRef better(const ExprRef &a, const ExprRef &b) const { return extreme(fold.descending, a, b); }
  ExprRef worse(const ExprRef &a, const ExprRef &b) const { return extreme(!fold.descending, a, b); }
  ExprRef extreme(bool most, const ExprRef &a, const ExprRef &b) const;
  StmtRef everyElement(const std::function<StmtRef(const ExprRef &)> &make, int64_t first = 0) const;
  /// The place of element `index`.
  ExprRef placeAt(const ExprRef &index) const {
    return subscript(var(fold.places->array, fold.places->type), index, fold.places->type);
  }
  /// A value and its place.
  struct Entry {
    ExprRef value, place;
  };
  Entry entryAt(const ExprRef &index) const { return {element(index), fold.places ? placeAt(index) : nullptr}; }
  ExprRef comesBefore(const Entry &a, const Entry &b) const;
  StmtRef put(const ExprRef &index, const Entry &from) const;
  StmtRef inserted(const Entry &added);
  StmtRef sorted();
  /// `other`: element i of the other sorted array, counted from its end.
  std::vector<StmtRef> merged(const std::function<Entry(const ExprRef &)> &other);

  SortedFold fold;
  int64_t size;
  ThreadGroup group;
  std::set<std::string> &taken;
  ExprRef bound; ///< what is worse need not be inserted; null: all may be among the best
  std::string entry = "entry", distance = "distance", offset = "lane_offset", warp = "of_warp"; ///< loop variables
};

} // namespace optiml

#endif
