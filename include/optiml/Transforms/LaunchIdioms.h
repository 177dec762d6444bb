//===- LaunchIdioms.h - what a sequence of launches computes ----*- C++ -*-===//
//
// Kernels that are one step of a well-known algorithm, launched again and again by a loop on the host. What is recognized
// here is what a single launch does, from the cases of its threads; whether a sequence of launches is the whole algorithm
// is asked at run time, of the arguments of the launches that the loop really makes (docs/transforms.md).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_LAUNCHIDIOMS_H
#define OPTIML_TRANSFORMS_LAUNCHIDIOMS_H

#include "optiml/Transforms/TimeSteps.h"
#include "llvm/Support/Error.h"

namespace optiml {

struct LaunchIdiom {
  enum class Kind {
    ScanStep,     ///< out[i] = i >= distance ? in[i - distance] op in[i] : in[i], for 0 <= i < count
    ExchangeStep, ///< data[x], data[x + 1] in order, for x = first, first + 2, … (`count` pairs)
    TimeStep,     ///< new[cell] = f(old around cell), for all cells of a grid
  };
  Kind kind = Kind::ScanStep;
  std::string in, out;     ///< parameters; the same for ExchangeStep
  std::string element;     ///< C++ type of the elements
  bool isFloat = false;
  std::string op;          ///< ScanStep: + * & | ^ min max

  /// All expressions are C++ in long long; the kernel's parameters are members of `launch`.
  struct Form {
    std::vector<std::string> when; ///< conditions under which a launch has this form
    std::string count;
    std::string distance;          ///< ScanStep
    std::string first;             ///< ExchangeStep; must turn out to be 0 or 1
    bool threadPerElement = false; ///< ExchangeStep: thread i looks at x = i, not at x = first + 2 i
  };
  std::vector<Form> forms; ///< no two of them at once

  std::shared_ptr<const TimeStep> step; ///< TimeStep
  TimeTile tile;                        ///< TimeStep: what is chosen
};

/// The scan or sort that the kernel is a step of. NotApplicable tells why it is none that is known.
llvm::Expected<LaunchIdiom> recognizeLaunchIdiom(const Kernel &kernel);
/// The same for any idiom, `state` being the kernel before any rewrite.
llvm::Expected<LaunchIdiom> recognizeLaunchIdiom(const KernelState &state);

} // namespace optiml

#endif
