//===- RecordParts.h - the variables that records became --------*- C++ -*-===//
#ifndef OPTIML_LIB_ANALYSIS_RECORDPARTS_H
#define OPTIML_LIB_ANALYSIS_RECORDPARTS_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// Removes what splitting records leaves over: variables `made` that nothing reads, names that only carry a value to
/// where it is used once, and copies of a variable that replace it. Declarations go to where the values are.
void tidyParts(Kernel &kernel, const std::set<std::string> &made);

bool loadsMemory(const ExprRef &e);
/// The variable that an element or member belongs to; empty when it is none.
std::string placeOf(ExprRef e);

} // namespace optiml

#endif
