//===- KeptList.h - the k best values, however they are kept ----*- C++ -*-===//
//
// Statements that take one value into a list of the k best, which is sorted: by shifting, by exchanging, with a count
// or a guard, in a local array or in memory. What the statements do with the values is only to compare and to move
// them. So they can be run on every case there is: for each length, each number of entries, and each place at which the
// new value may stand among them. If the list is the right one after each of them, it always is.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_KEPTLIST_H
#define OPTIML_ANALYSIS_KEPTLIST_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

struct KeptList {
  /// Entry i of the list is element scale * i + base.
  struct Array {
    std::string name; ///< Access::array
    ExprRef root;
    Space space = Space::Local;
    Type type; ///< of an element
    Poly scale, base;
    ExprRef element; ///< one as the statements write it
  };
  Array values;
  std::optional<Array> places;   ///< what belongs to each value; equal values stay in the order in which they came
  std::string count;             ///< the variable that says how many entries there are; empty: always `length`
  bool countsIterations = false; ///< the loop's counter, from 0 on, says how many entries there are
  Poly length;                   ///< k
  bool descending = true;        ///< the largest values, else the smallest
  ExprRef value, place;          ///< what comes in, in terms of what is known before the statements
  bool ignoresUnordered = true;  ///< a value that is no number changes nothing
  bool isCounted() const { return countsIterations || !count.empty(); }

  StmtRef list; ///< the statements are [first, last) of this block
  size_t first = 0, last = 0;
};

/// The lists that `loop` keeps, each for all lengths up to `most`, and what is done with them beside the statements
/// aside. A list into which several values come in an iteration is there once for each of them.
std::vector<KeptList> findKeptLists(const KernelModel &model, Stmt &loop, int64_t most);

} // namespace optiml

#endif
