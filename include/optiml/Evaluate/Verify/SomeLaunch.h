//===- SomeLaunch.h - rewrites that run for some launch ---------*- C++ -*-===//
#ifndef OPTIML_EVALUATE_VERIFY_SOMELAUNCH_H
#define OPTIML_EVALUATE_VERIFY_SOMELAUNCH_H

#include "optiml/Core/Variant.h"
#include "optiml/Workload/Workload.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// NotApplicable, with a condition that does not hold, where the original would run for every launch of the kernel.
llvm::Error requireSomeLaunch(const KernelRewrite &rewrite, const Workload &workload);

} // namespace optiml

#endif
