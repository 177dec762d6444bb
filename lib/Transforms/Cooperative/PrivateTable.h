//===- PrivateTable.h - a block's own copy of an array ----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_PRIVATETABLE_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_PRIVATETABLE_H

#include "Reduction.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace optiml {

/// Where an update goes: array[row], or a number within a record: array[row].sums[i], array[row].count.
struct TablePlace {
  ExprRef row;
  std::vector<ExprRef> inner;   ///< indices within the record
  std::vector<int64_t> extents; ///< ... of arrays of so many elements
  std::string path;             ///< "_sums": what all rows have of one name
  /// The place with other indices.
  ExprRef with(const ExprRef &row, const std::vector<ExprRef> &inner) const;
  ExprRef place; ///< as it is
};
std::optional<TablePlace> tablePlace(const ExprRef &place, const std::string &array);

/// An atomic update of an array's element, and how it is folded: atomicAdd is +, and so on.
struct Update {
  Stmt *stmt;
  const Access *access;
  std::string fold; ///< + - & | ^ min max
  ExprRef value;
  std::optional<TablePlace> place; ///< where elements have tables
};

/// What no update changes: 0, or the other end of the type for a minimum or maximum.
ExprRef neutral(const std::string &fold, const Type &type);
/// The same atomic function for a sum of its values.
ExprRef updateLike(const ExprRef &update, const ExprRef &address, const ExprRef &value);
/// total = total fold value
StmtRef foldInto(const std::string &fold, const ExprRef &total, const ExprRef &value);
void replaceUpdate(Kernel &kernel, const Update &u, std::vector<StmtRef> with);

/// Tables in shared memory for the first rows of an array, one for each path.
struct PrivateTable {
  int64_t bins = 0;     ///< how many rows
  int64_t copies = 0;   ///< tables with gaps, which a block's threads take by turns; 0: one table without gaps
  bool isWhole = false; ///< the array has no other rows
};

/// Makes the updates of `array`, whose places are given, updates of the tables, which are added to the array at the
/// kernel's end. Updates with one path are of one kind.
llvm::Error intoTable(KernelState &state, Kernel &kernel, const KernelModel &model, const std::vector<Update> &updates,
                      const std::string &array, const PrivateTable &wanted, const ThreadGroup &group);

} // namespace optiml

#endif
