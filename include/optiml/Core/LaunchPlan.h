//===- LaunchPlan.h - what replaces one kernel launch -----------*- C++ -*-===//
#ifndef OPTIML_CORE_LAUNCHPLAN_H
#define OPTIML_CORE_LAUNCHPLAN_H

#include "optiml/Core/IntExpr.h"
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace optiml {

/// One kernel launch of a plan. `arguments` are names of the original's parameters or of scratch buffers, in the order
/// of the new kernel's parameters.
struct LaunchStep {
  std::string kernel; ///< name of the new kernel (a plain identifier in the emitted text)
  std::array<IntExpr, 3> grid, block;
  IntExpr sharedBytes; ///< dynamic shared memory
  std::vector<std::string> arguments;
};

/// Stream-ordered memory that lives for one dispatched launch.
struct ScratchBuffer {
  std::string name;
  std::string elementType; ///< as C++ text
  IntExpr elements;
  bool zeroed = false;
  unsigned elementBytes = 0; ///< 0: known from elementType, a type of C++ or CUDA
};

/// What one launch of `original` becomes: scratch allocated, steps launched in order on the launch's stream.
struct LaunchPlan {
  std::vector<ScratchBuffer> scratch;
  std::vector<LaunchStep> steps;
};

/// A run-time condition under which a variant may run in place of the original.
struct Condition {
  IntExpr expression; ///< non-zero: holds
  std::string why;    ///< one line for the emitted comment and the report
};

nlohmann::json toJson(const LaunchPlan &plan);
llvm::Expected<LaunchPlan> launchPlanFromJson(const nlohmann::json &value);

} // namespace optiml

#endif
