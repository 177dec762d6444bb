//===- Choices.h - values chosen by conditions ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_ANALYSIS_CHOICES_H
#define OPTIML_LIB_ANALYSIS_CHOICES_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// "int i = e; if (i < 0) i = 0; if (i >= n) i = n - 1;" becomes "int i = min(max(e, 0), n - 1);", and what is chosen
/// otherwise a conditional expression, for locals that indices are made of.
void foldChoices(Kernel &kernel);

/// The same for the statements of a function that are put in place of a call. False when more than declarations is
/// left.
bool foldChoices(std::vector<StmtRef> &list);

} // namespace optiml

#endif
