//===- FuseKernels.h - the steps of fusing kernels --------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_FUSEKERNELS_H
#define OPTIML_LIB_TRANSFORMS_FUSEKERNELS_H

#include "Common.h"
#include "optiml/Transforms/FuseKernels.h"

namespace optiml {

/// Which part of a fused kernel each of its statements comes from.
using PartOf = std::map<const Stmt *, unsigned>;
/// Names of two arrays, in alphabetical order.
using ArrayPairs = std::set<std::pair<std::string, std::string>>;

/// A grid-stride loop's own start and step, by its variable.
struct StrideLoop {
  ExprRef first, step;
};
using StrideLoops = std::map<std::string, StrideLoop>;
/// Lets the kernel's grid-stride loops stand as for (i = 0; …; ++i), and adds them to `strides`.
void hideStrides(Kernel &kernel, StrideLoops &strides);
/// Puts them back.
void showStrides(Kernel &kernel, const StrideLoops &strides);

/// Whether what one part writes meets what another one accesses in the same thread only. Records conditions in `state`,
/// whose tree is the fused kernel, and the arrays that these keep apart in `disjoint`. `flows`: a part reads
/// floating-point numbers that an earlier one has written.
llvm::Error requireSameThread(KernelState &state, const KernelModel &model, const PartOf &partOf, const StrideLoops &strides,
                              ArrayPairs &disjoint, bool &flows);

/// A value that is stored and then loaded again by the same thread is kept in a local variable; a store that a later one
/// to the same place overwrites is left out.
void forwardStores(Kernel &kernel, const ArrayPairs &disjoint);

} // namespace optiml

#endif
