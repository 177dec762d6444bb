//===- Inductions.h - variables that advance with a loop --------*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_INDUCTIONS_H
#define OPTIML_CANONICALIZE_INDUCTIONS_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// Puts functions of a loop's counter in place of integers and pointers that grow by the same amount in every iteration
/// of it ("for (a = first; a <= last; a += 16, b += 16 * n)", "A += 16;" at the end of the body), and values in place
/// of variables that advance between the kernel's outermost statements. A kernel in which something advances in another
/// way stays as it is. `block`: the block shape.
void replaceInductions(Kernel &kernel, const std::array<int64_t, 3> &block);

} // namespace optiml

#endif
