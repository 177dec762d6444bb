//===- EarlyBuild.h - the program, before it is asked for -------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_EARLYBUILD_H
#define OPTIML_LIB_DRIVER_EARLYBUILD_H

#include "optiml/Frontend/Toolchain.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/TempDir.h"
#include <future>
#include <memory>
#include <vector>

namespace optiml {

/// The user's program, built while a worker starts and the file is parsed. The destructor stops nvcc.
struct EarlyBuild {
  TempDir dir;
  Deadline stop;      ///< raised when nobody wants it
  double seconds = 0; ///< that it took, once `executable` is there
  std::future<llvm::Expected<std::string>> executable;

  EarlyBuild(TempDir dir, const std::atomic<bool> *cancel) : dir(std::move(dir)), stop(0, cancel) {}
  ~EarlyBuild();
  /// `arguments`: nvcc's. Null where this machine has no driver, or none is needed on it.
  static std::unique_ptr<EarlyBuild> start(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                           const std::atomic<bool> *cancel);
};

} // namespace optiml

#endif
