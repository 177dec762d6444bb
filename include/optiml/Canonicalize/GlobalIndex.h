//===- GlobalIndex.h - which index of the launch a thread has ---*- C++ -*-===//
#ifndef OPTIML_CANONICALIZE_GLOBALINDEX_H
#define OPTIML_CANONICALIZE_GLOBALINDEX_H

#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// How a kernel uses one launch axis.
struct AxisUse {
  bool global = false;    ///< through blockIdx*blockDim + threadIdx
  unsigned otherLine = 0; ///< line of another use of threadIdx/blockIdx/blockDim/gridDim; 0: none
  bool other = false;
};

/// Replaces every blockIdx.a * blockDim.a + threadIdx.a (in any order, through copies of the indices in locals, with
/// the pinned extent in place of blockDim) by the pseudo index globalIdx.a, and tells how each axis is used then.
std::array<AxisUse, 3> normalizeGlobalIndex(Kernel &kernel, const std::array<int64_t, 3> &block);

/// (a + i)[k] as a[i + k], the sum of 64 bits as that of pointers is; null for any other expression.
ExprRef withoutPointerSum(const ExprRef &e);

/// Puts locals that only hold a place in an array (const float *row = a + i * n;) in where they are used, so that there
/// is no pointer for each copy of a thread.
void inlinePointerLocals(Kernel &kernel);

/// Puts locals that depend on threadIdx.x in where they are used, where they keep their value. Returned are the
/// parameters that they load from: the kernel does not write through these, but maybe through others that lead to the
/// same memory.
std::set<std::string> inlineThreadLocals(Kernel &kernel);

/// The builtins of one axis that the kernel uses ("threadIdx"); all of them when text that is kept verbatim mentions
/// any.
std::set<std::string> builtinsOf(const Kernel &kernel, unsigned axis);

/// Where an axis of the blocks goes with another one of their threads ("blockIdx.x * blockDim.y + threadIdx.y"), the
/// grid is turned, so that each goes with its own.
void pairAxes(KernelState &state, Kernel &kernel);

/// Where blocks are numbered row by row ("blockIdx.y * gridDim.x + blockIdx.x") and nothing else asks for their place,
/// the grid gets one axis.
void flattenGrid(KernelState &state, Kernel &kernel);

/// Where a kernel whose threads do not wait for each other asks which block a thread is in ("row = blockIdx.x, col =
/// threadIdx.x"), along x, y, or both, the blocks of the captured launch's shape become rows along an axis that the
/// kernel does not use.
void separateBlocks(KernelState &state, Kernel &kernel);

/// Pairs the axes, flattens the grid, and separates the blocks. Then, along an axis that the kernel uses by its block
/// index alone (blocks being one thread thick), or by its thread index alone (in one block), that is the global index:
/// writes it so, and records the condition.
void adoptPlainIndices(KernelState &state, Kernel &kernel);

/// Replaces globalIdx.a by `make(axis)`.
void lowerGlobalIndex(Kernel &kernel, const std::function<ExprRef(unsigned axis)> &make);
/// The same by blockIdx.a * blockDim.a + threadIdx.a.
void lowerGlobalIndex(Kernel &kernel);
/// block * extent + thread computed in `type`, which has 64 bits.
ExprRef widenedIndex(const ExprRef &index, const Type &type);
/// blockIdx.a * extent + threadIdx.a
ExprRef globalIndexExpr(unsigned axis, int64_t extent);
/// blockIdx.a * blockDim.a + threadIdx.a
ExprRef globalIndexExpr(unsigned axis);
ExprRef axisBuiltin(const char *base, unsigned axis);

} // namespace optiml

#endif
