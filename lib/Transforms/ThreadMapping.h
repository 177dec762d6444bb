//===- ThreadMapping.h - which thread does which work -----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_THREADMAPPING_H
#define OPTIML_LIB_TRANSFORMS_THREADMAPPING_H

#include "Common.h"
#include "Distribute.h"

namespace optiml {

/// Maps the original threads to blocks of `shape` threads, each doing the work of copies[axis].factor original threads
/// along every axis (globalIdx.a = blockIdx.a * shape*factor + base + i*distance). Rewrites `kernel`, and the plan and
/// conditions of `state`. NotApplicable where the kernel depends on its own block shape.
llvm::Error remapThreads(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &shape,
                         const std::array<CopyAxis, 3> &copies);

} // namespace optiml

#endif
