//===- Advances.h - loops by one counter ------------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_ADVANCES_H
#define OPTIML_ANALYSIS_ADVANCES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "while (p != end) { s += *p; ++p; }" becomes "for (int i = 0; i < n; ++i) s += p[i];", with n from what p and end
/// were made of, and "for (j = 0; j < n; ++j, ++at) s += x[at];" becomes "for (j = 0; j < n; ++j) s += x[at + j];":
/// integers and pointers that advance by the same in every iteration, and are not used after the loop, follow its
/// counter. What "*p++" does at once becomes two statements. New names join `taken`.
void useOneCounter(Kernel &kernel, std::set<std::string> &taken);

/// "--k", "k -= 1", "k = k + 1": 1 or -1, by which the expression moves an integer variable on, its first operand.
/// Nothing for any other, and for null.
std::optional<int64_t> stepByOne(const ExprRef &change);

} // namespace optiml

#endif
