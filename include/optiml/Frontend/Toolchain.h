//===- Toolchain.h - where nvcc, CUDA and Clang's headers are ---*- C++ -*-===//
#ifndef OPTIML_FRONTEND_TOOLCHAIN_H
#define OPTIML_FRONTEND_TOOLCHAIN_H

#include "llvm/Support/Error.h"
#include <string>

namespace optiml {

struct Toolchain {
  std::string nvcc;        ///< $OPTIML_NVCC, $CUDA_PATH/bin/nvcc, PATH, /usr/local/cuda/bin/nvcc, in this order
  std::string cudaPath;    ///< the folder with include/cuda_runtime.h that belongs to it
  std::string resourceDir; ///< Clang's headers: $OPTIML_RESOURCE_DIR, beside the program (lib/clang/22), LLVM's own
  std::string hostCxx;     ///< links emulated programs: $OPTIML_HOST_CXX, c++, g++, clang++-22
  /// The host compiler's folder with omp.h, which Clang's own headers lack; empty when it has none.
  std::string openmpHeaders;
  std::string libDir; ///< the folder that holds liboptiml-cudart.a: ../lib beside the program
  /// `argv0` locates the program. The error names what is missing and the command that installs it.
  static llvm::Expected<Toolchain> find(const char *argv0);
  /// "13.0"; empty where the headers do not tell.
  std::string cudaVersion() const;
};

} // namespace optiml

#endif
