//===- PlainForm.h - the same kernel, said more plainly ---------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PLAINFORM_H
#define OPTIML_LIB_TRANSFORMS_PLAINFORM_H

#include "Common.h"

namespace optiml {

/// Ways of saying something that proofs do not follow become ones that they do: a local struct becomes a variable for
/// each member; an integer that is set several times in one list becomes several that are set once; `k < 16 && t + k <
/// n` as the condition of a loop over k, and k < min(16, n - t), become a guard in the loop where they only end it;
/// &p[i] is p + i.
void bringIntoPlainForm(Kernel &kernel);

} // namespace optiml

#endif
