//===- ChangedParameters.h - parameters that the kernel moves on -*- C++ -*-===//
#ifndef OPTIML_LIB_ANALYSIS_CHANGEDPARAMETERS_H
#define OPTIML_LIB_ANALYSIS_CHANGEDPARAMETERS_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// A parameter that statements of the kernel's own list change, and none in loops or under conditions after them, gets
/// a variable of its own from there on. `taken`: names that no variable may get.
void followParameters(Kernel &kernel, std::set<std::string> &taken);

} // namespace optiml

#endif
