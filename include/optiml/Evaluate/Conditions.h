//===- Conditions.h - a launch plan against a captured launch ---*- C++ -*-===//
#ifndef OPTIML_EVALUATE_CONDITIONS_H
#define OPTIML_EVALUATE_CONDITIONS_H

#include "optiml/Core/Variant.h"
#include "optiml/Workload/Workload.h"

namespace optiml {

/// Names of IntExpr as a captured launch defines them: geometry, scalar arguments, addresses of pointer arguments.
/// `parameters` are the original kernel's parameter names in order, `isInteger[i]` tells whether parameter i is an
/// integer (by its bytes: 1, 2, 4 or 8), `isSigned[i]` how to read it.
class LaunchEnvironment {
public:
  LaunchEnvironment(const LaunchImage &launch, const KernelRewrite &rewrite);
  std::optional<int64_t> operator()(const std::string &name) const;

private:
  const LaunchImage &launch;
  std::vector<std::string> names; ///< of the parameters
  std::vector<bool> isUnsigned;
};

/// The parameters' names in a C++ parameter list as KernelRewrite::originalParameters prints it, in order.
std::vector<std::string> parameterNames(const std::string &parameterList);

/// Whether every condition of the rewrite holds for the launch. Otherwise `failed` says which does not.
bool conditionsHold(const KernelRewrite &rewrite, const LaunchImage &launch, std::string &failed);

} // namespace optiml

#endif
