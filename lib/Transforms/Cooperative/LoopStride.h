//===- LoopStride.h - iterations taken in turns -----------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_LOOPSTRIDE_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_LOOPSTRIDE_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"

namespace optiml {

/// Gives each thread of a group every n-th iteration of a kernel's loops.
class LoopStride {
public:
  /// `taken`: the names that the kernel has, to which those of new counters are added.
  LoopStride(KernelState &state, Kernel &kernel, const KernelModel &model, std::set<std::string> &taken)
      : state(state), kernel(kernel), model(model), taken(taken) {}
  /// Every thread takes every `threads`-th iteration; `thread` is its number.
  void stride(const CountedLoop &loop, const ExprRef &thread, int64_t threads);

private:
  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  std::set<std::string> &taken;
  std::set<std::string> narrowed; ///< counters that became locals beside wider ones
};

} // namespace optiml

#endif
