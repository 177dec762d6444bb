//===- FuseInBlocks.h - rows of blocks --------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEINBLOCKS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEINBLOCKS_H

#include "optiml/Analysis/KernelModel.h"
#include "llvm/Support/Error.h"

namespace optiml {

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

} // namespace optiml

#endif
