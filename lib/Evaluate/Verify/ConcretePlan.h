//===- ConcretePlan.h - launch plans made concrete --------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_CONCRETEPLAN_H
#define OPTIML_LIB_EVALUATE_VERIFY_CONCRETEPLAN_H

#include "optiml/Core/Variant.h"
#include "optiml/Workload/Replay.h"
#include "optiml/Workload/Workload.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// A plan for one captured launch: numbers in place of expressions.
struct ConcretePlan {
  std::vector<emu::ReplayScratch> scratch;
  std::vector<emu::ReplayStep> steps;
};

/// The launch as it was captured, of kernel `symbol`.
ConcretePlan identityPlan(const LaunchImage &launch, const std::string &symbol);

/// What the rewrite makes of the launch. NotApplicable, with the condition, when one does not hold; another error when
/// the plan makes no sense (unknown name, geometry beyond the device's limits).
llvm::Expected<ConcretePlan> concretePlan(const KernelRewrite &rewrite, const LaunchImage &launch);

/// sizeof of a C++ type as text, for the types that scratch buffers have.
std::optional<uint64_t> sizeOfType(llvm::StringRef type);

} // namespace optiml

#endif
