//===- Driver.h - the CUDA driver, when there is one ------------*- C++ -*-===//
//
// libcuda.so.1, opened when first asked for. Needs no LLVM: the library that is injected into programs uses it too.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_DRIVER_H
#define OPTIML_GPU_DRIVER_H

#include "optiml/Gpu/DynamicLibrary.h"
#include <cuda.h>
#include <string>

namespace optiml::gpu {

struct Driver {
#define OPTIML_FUNCTION(NAME) OPTIML_FUNCTION_MEMBER(NAME)
#include "optiml/Gpu/DriverFunctions.def"
#undef OPTIML_FUNCTION

  /// The driver's functions, or null, and `why` says what is missing. Does not initialize the driver.
  static const Driver *get(std::string &why);
  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string message(CUresult result) const;
};

} // namespace optiml::gpu

#endif
