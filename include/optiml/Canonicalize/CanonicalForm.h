//===- CanonicalForm.h - the same kernel, said more plainly -----*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_CANONICALFORM_H
#define OPTIML_CANONICALIZE_CANONICALFORM_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// Ways of saying something that proofs do not follow become ones that they do: a local struct becomes a variable for
/// each member; an integer that is set several times in one list becomes several that are set once; `k < 16 && t + k <
/// n` as the condition of a loop over k, and k < min(16, n - t), become a guard in the loop where they only end it;
/// &p[i] is p + i.
void canonicalize(Kernel &kernel);

} // namespace optiml

#endif
