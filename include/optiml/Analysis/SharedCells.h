//===- SharedCells.h - what is in shared memory, and who put it there -----===//
#ifndef OPTIML_ANALYSIS_SHAREDCELLS_H
#define OPTIML_ANALYSIS_SHAREDCELLS_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// The arrays that a block fills, waits, and reads: for each read, the value that was stored there, as the thread that
/// reads would compute it itself.
///
/// An array is understood when all its stores stand before a barrier in some list of statements, and all its reads
/// after it in the same list: a read then finds what some thread has stored in the same iterations of the loops around.
/// Which thread that was follows from the cell's index, which has to be an affine function of the thread (and of the
/// loops around the store) that gives no two threads one cell. What was stored has to be a function of indices,
/// parameters, counters of loops around the list, and memory that the kernel does not write.
class SharedCells {
public:
  /// `shape`: the block, which `model` was made for.
  SharedCells(Kernel &kernel, const KernelModel &model, const std::array<int64_t, 3> &shape)
      : kernel(kernel), model(model), shape(shape) {}

  /// Finds the stores. NotApplicable where an array is used in a way that is not understood.
  llvm::Error collect();
  bool any() const { return !arrays.empty(); }
  /// The value that `read` finds. NotApplicable where a cell may not have been stored, or not by one known thread.
  llvm::Expected<ExprRef> valueAt(const Access &read) const;
  /// Statements of stores, which nothing needs when every read has been replaced.
  std::set<const Stmt *> storeStatements() const;
  /// Loads that values are computed from.
  const std::set<const Access *> &loads() const { return sources; }

private:
  struct Store {
    const Access *access;
    ExprRef value;
    std::vector<std::pair<ExprRef, bool>> guards; ///< within the list
    std::vector<CountedLoop> loops;               ///< within the list
  };
  struct Array {
    const Stmt *list = nullptr; ///< holds stores, barrier and reads
    std::vector<Store> stores;  ///< in order
  };
  /// A thread, and iterations of the loops around its store.
  struct Writer {
    std::map<std::string, Poly> at; ///< by thread index and counter
    std::vector<Poly> within;       ///< it exists where these are >= 0
    std::vector<Poly> facts;        ///< of the names that `within` is about
    std::set<std::string> any;      ///< thread indices that the cell does not tell: all of them may store it
  };

  bool staysInRows(const Access &access) const;
  llvm::Error collectArray(const std::string &name, std::vector<const Access *> accesses);
  llvm::Expected<Store> understood(const Access &access, const Stmt &list);
  llvm::Error sameForAll(const Stmt &list) const;
  std::optional<Writer> writerOf(const Store &store, const Access &read) const;
  llvm::Expected<ExprRef> stored(const Array &array, size_t count, const Access &read,
                                 std::vector<std::pair<ExprRef, bool>> known, const std::vector<Poly> &facts) const;
  llvm::Expected<ExprRef> atWriter(const ExprRef &e, const Store &store, const Writer &writer, const Stmt &list) const;

  Kernel &kernel;
  const KernelModel &model;
  std::array<int64_t, 3> shape;
  std::map<std::string, Array> arrays;
  std::set<const Stmt *> written; ///< statements that store
  mutable std::set<const Access *> sources;
};

} // namespace optiml

#endif
