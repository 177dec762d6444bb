//===- Cupti.h - CUPTI, when there is one -----------------------*- C++ -*-===//
//
// libcupti, opened when first asked for: from $OPTIML_CUPTI (a file), from the loader's paths, and from where the CUDA
// Toolkit keeps it ($CUDA_PATH or /usr/local/cuda: extras/CUPTI/lib64, lib64, targets/x86_64-linux/lib). Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_CUPTI_H
#define OPTIML_GPU_CUPTI_H

#include "optiml/Gpu/DynamicLibrary.h"
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <string>

namespace optiml::gpu {

struct Cupti {
#define OPTIML_FUNCTION(NAME) OPTIML_FUNCTION_MEMBER(NAME)
#include "optiml/Gpu/CuptiFunctions.def"
#undef OPTIML_FUNCTION

  /// CUPTI's functions, or null, and `why` says what is missing.
  static const Cupti *get(std::string &why);
  std::string message(CUptiResult result) const;
};

} // namespace optiml::gpu

#endif
