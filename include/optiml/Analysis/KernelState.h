//===- KernelState.h - a kernel on its way through a recipe -----*- C++ -*-===//
//
// The tree, the plan of its launch, and the conditions that it rests on so far.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_KERNELSTATE_H
#define OPTIML_ANALYSIS_KERNELSTATE_H

#include "optiml/Analysis/Tree.h"
#include "optiml/Core/Variant.h"
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace optiml {

/// What is known of the launches a kernel is optimized for. Guides the choice of values; never a proof.
struct LaunchHints {
  std::array<int64_t, 3> grid{0, 0, 0}, block{0, 0, 0}; ///< of the heaviest captured launch; zeros when unknown
  unsigned maxSharedBytes = 48 * 1024;                  ///< static shared memory a block may use
  unsigned maxThreads = 1024;
  unsigned arch = 0;        ///< least compute capability × 10 that the program is compiled for; 0 when it is not known
  bool tensorFloat = false; ///< inputs of products may be rounded to TF32
  unsigned multiprocessors = 132;         ///< of the GPU that the kernel is optimized for
  std::vector<std::string> arguments;     ///< raw values on which all captured launches agree; empty where they do not
  std::map<std::string, int64_t> scalars; ///< the integers among them, by parameter
  /// Of the heaviest captured launch: raw values of its arguments, and where its buffers begin and how many bytes they
  /// have.
  std::vector<std::string> heaviest;
  std::map<std::string, int64_t> ofHeaviest; ///< the integers among them, by parameter
  std::vector<std::pair<uint64_t, uint64_t>> buffers;
  std::map<std::string, int64_t>
      reach;                   ///< bytes from where a pointer parameter points to its buffer's end, in that launch
  std::set<std::string> whole; ///< pointer parameters that point to where their buffers begin
  bool approximate = false;    ///< approximate functions and less precision are allowed (the verifier holds the budget)
  bool strictFloat = false;    ///< no change of floating-point results at all, not even the sign of a zero
  std::string exercised; ///< condition (IntExpr.h) for the launches that variants are tested on; empty: none is known
  /// The value of an expression over the scalars, where these are known.
  std::optional<int64_t> evaluate(const IntExpr &e) const;
};

class TouchedRanges;

/// That a transform does not apply at a site, and why.
struct Refusal {
  std::string transform, site, reason;
};

/// A kernel on its way through a recipe.
struct KernelState {
  std::shared_ptr<const Kernel> tree;     ///< null when its new text cannot be read: nothing else applies then
  std::shared_ptr<const Kernel> original; ///< before any rewrite, or as plain: it touches the same memory
  std::shared_ptr<TouchedRanges> touched; ///< what requireDisjoint found in `original`, once for all that follow
  std::shared_ptr<std::vector<Refusal>> refusals; ///< takes what listing the sites finds out; null: nobody asks
  KernelRewrite rewrite;                          ///< plan and conditions; twinText is filled by whoever prints
  LaunchHints hints;                              ///< of the launch that the tree is written for
  std::string helpers;                            ///< device functions that new text brought; stand before the twin
  std::string verbatim;                           ///< the twin as it was given, until something else is done to it
  /// The blocks that the tree is written for, over the original launch: "grid.x" and so on, until a transform needs
  /// others.
  std::array<IntExpr, 3> blocks = {IntExpr::of("grid.x"), IntExpr::of("grid.y"), IntExpr::of("grid.z")};
  /// The same for the threads of a block.
  std::array<IntExpr, 3> extents = {IntExpr::of("block.x"), IntExpr::of("block.y"), IntExpr::of("block.z")};
  /// Those that `original` is written for.
  std::array<IntExpr, 3> originalExtents = extents;
  /// An expression over the launch that the tree is written for, as one over the original launch.
  IntExpr overOriginal(const std::string &expression) const;
  /// The block shape when the plan fixes it, zeros otherwise.
  std::array<int64_t, 3> pinnedBlock() const;
  bool isPinned() const { return pinnedBlock() != std::array<int64_t, 3>{0, 0, 0}; }
  /// Adds a condition on the launch that the tree is written for, unless an equal one is there.
  void require(const std::string &expression, const std::string &why) { require(overOriginal(expression), why); }
  /// The same for a condition on the original launch.
  void require(const IntExpr &condition, const std::string &why);
  /// That the launch has blocks of this shape.
  void requireBlock(const std::array<int64_t, 3> &shape, const std::string &why);
  KernelState withTree(std::shared_ptr<const Kernel> tree) const;
};

/// The state before any transform: the twin equals the original, launched as the original.
KernelState originalState(std::shared_ptr<const Kernel> tree, const std::string &name, const std::string &symbol,
                          const std::string &twin, const LaunchHints &hints);

/// Text of the launch's threads along an axis, for KernelState::require and overOriginal.
inline std::string threadsAlong(unsigned axis) {
  std::string suffix(1, char('x' + axis));
  return "grid." + suffix + " * block." + suffix;
}

} // namespace optiml

#endif
