//===- PrivateTable.h - a block's own copy of an array ----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_PRIVATETABLE_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_PRIVATETABLE_H

#include "Reduction.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// An atomic update of an array's element, and how it is folded: atomicAdd is +, and so on.
struct Update {
  Stmt *stmt;
  const Access *access;
  std::string fold; ///< + - & | ^ min max
  ExprRef value;
};

/// What no update changes: 0, or the other end of the type for a minimum or maximum.
ExprRef neutral(const std::string &fold, const Type &type);
/// The same atomic function for a sum of its values.
ExprRef updateLike(const ExprRef &update, const ExprRef &address, const ExprRef &value);
/// total = total fold value
StmtRef foldInto(const std::string &fold, const ExprRef &total, const ExprRef &value);
void replaceUpdate(Kernel &kernel, const Update &u, std::vector<StmtRef> with);

/// A table in shared memory for the first elements of an array.
struct PrivateTable {
  Type type;          ///< of an element
  int64_t bins = 0;   ///< how many elements
  int64_t copies = 0; ///< tables with gaps, which a block's threads take by turns; 0: one table without gaps
};

/// Makes the updates of `array` updates of the table, which is added to the array at the kernel's end.
llvm::Error intoTable(KernelState &state, Kernel &kernel, const KernelModel &model, const std::vector<Update> &updates,
                      const std::string &array, const PrivateTable &wanted, const ThreadGroup &group);

} // namespace optiml

#endif
