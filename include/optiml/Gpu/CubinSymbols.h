//===- CubinSymbols.h - what a cubin defines --------------------*- C++ -*-===//
//
// Kernels and variables of device code as ptxas wrote it (an ELF file), under the names that the driver knows them by.
// Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_CUBINSYMBOLS_H
#define OPTIML_GPU_CUBINSYMBOLS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace optiml::gpu {

/// A __device__, __managed__ or __constant__ variable.
struct CubinVariable {
  std::string name; ///< mangled
  uint64_t bytes = 0;
  bool constant = false;
  bool managed = false;
  std::string initial; ///< what the program gives it; empty when that is all zero
  /// Offset and size of what the loader fills in (addresses of variables and functions): not in `initial`.
  std::vector<std::pair<uint64_t, uint32_t>> relocated;

  /// Whether `bytes` bytes of content are what the program gave it, as far as the cubin tells.
  bool isInitial(const void *content) const;
};

struct CubinSymbols {
  std::vector<std::string> kernels; ///< mangled
  std::vector<CubinVariable> variables;
};

/// Reads the symbols of a cubin. Variables that the compiler made (strings, tables, a kernel's own constants) are left
/// out. False when it is not a whole 64-bit ELF file (a fat binary, say); `into` is then empty.
bool readCubin(const void *image, size_t bytes, CubinSymbols &into);

} // namespace optiml::gpu

#endif
