//===- KernelTimes.h - how long a program's kernels take --------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_KERNELTIMES_H
#define OPTIML_LIB_DRIVER_KERNELTIMES_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace optiml {

struct KernelTime {
  std::string symbol, name;
  uint64_t launches = 0;
  uint64_t recorded = 0; ///< of these; they do not count for the time where there are others
  double seconds = 0;    ///< of all, on the GPU
};

/// As the capture library writes them (docs/formats.md).
struct KernelTimes {
  std::vector<KernelTime> kernels; ///< the longest first
  double kernelSeconds = 0, copySeconds = 0;
  int paused = 0; ///< the program's process, where it has stopped and waits to go on

  static llvm::Expected<KernelTimes> read(const std::string &path);
  llvm::Error write(const std::string &path) const;
  /// Those of another process of the same program.
  void add(const KernelTimes &other);
};

} // namespace optiml

#endif
