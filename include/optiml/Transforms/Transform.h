//===- Transform.h - one rewrite of a kernel --------------------*- C++ -*-===//
//
// A transform is stateless: it lists the sites where it applies, each with feasible parameter values, and applies one
// action. It never guesses: what it cannot prove, or record as a run-time condition, is NotApplicable with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_TRANSFORM_H
#define OPTIML_TRANSFORMS_TRANSFORM_H

#include "optiml/Analysis/KernelState.h"
#include "optiml/Core/Interfaces.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace optiml {

/// Why transforms do not apply before, or after, the block's shape is fixed.
inline constexpr llvm::StringLiteral shapeIsFixed = "the block shape is fixed already";
inline constexpr llvm::StringLiteral shapeIsOpen = "the block shape is not fixed yet (apply block-shape first)";

class Transform {
public:
  virtual ~Transform();
  virtual llvm::StringRef name() const = 0;
  /// Sites in this kernel with values that are feasible there, best guess first. Site names start with the kernel's
  /// original name.
  virtual std::vector<ActionTemplate> sites(const KernelState &state) const = 0;
  /// `site` is what follows the kernel's name in the action's site ("" or "/k:A+B"). NotApplicable is an ordinary
  /// answer.
  virtual llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                            const Params &params) const = 0;

  /// It only tunes a kernel: which thread does what, and where data lie, stay as they are.
  virtual bool onlyTunes() const { return false; }
  /// The transform applies; a refusal goes to the state's list.
  bool applies(const KernelState &state, llvm::StringRef site, const Params &params) const;

protected:
  /// The site with those of `values` that apply there goes to `into`; false when none does. Where none of the first
  /// `telling` values applies, the others do not either.
  bool offer(std::vector<ActionTemplate> &into, const KernelState &state, const std::string &site,
             const std::vector<Params> &values, size_t telling = SIZE_MAX) const;
};

/// The site of a transform that has one for a whole kernel, with those of `offers` that apply; none when the first does
/// not.
std::vector<ActionTemplate> kernelSite(const Transform &transform, const KernelState &state,
                                       const std::vector<Params> &offers);

} // namespace optiml

#endif
