//===- OwnElements.h - elements that belong to a thread ---------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_OWNELEMENTS_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_OWNELEMENTS_H

#include "optiml/Analysis/Tree.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Private arrays of `threads` elements of which iteration i of each loop that mentions them accesses element i alone.
/// Where thread i of a group runs iteration i of all of these loops, the element is a variable of that thread.
class OwnElements {
public:
  /// Without arrays into which another loop folds values (ArrayFolds.h).
  OwnElements(Kernel &kernel, int64_t threads, bool strictFloat);
  /// The arrays that the loop may access once its iterations are shared out.
  std::set<std::string> in(const Stmt &loop) const;
  /// One of the loops has been shared out.
  void share(const Stmt &loop) { shared.insert(&loop); }
  /// Makes variables of the arrays whose loops were shared out. NotApplicable where only some of an array's were.
  llvm::Error rewrite();

private:
  struct Array {
    Stmt *declaration;
    std::set<const Stmt *> loops;
  };
  Kernel &kernel;
  std::map<std::string, Array> arrays;
  std::set<const Stmt *> shared;
};

} // namespace optiml

#endif
