//===- RuntimeCompiler.h - one text through NVRTC ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_GPU_DEVICE_RUNTIMECOMPILER_H
#define OPTIML_LIB_GPU_DEVICE_RUNTIMECOMPILER_H

#include <string>
#include <vector>

namespace optiml::gpu {

/// What `optiml-worker --compile` gets.
struct RuntimeCompile {
  std::string library;              ///< libnvrtc's file
  std::string version;              ///< that it must have: "13.0"
  std::string source, cubin;        ///< files
  std::vector<std::string> options; ///< NVRTC's own, and --instantiate=KERNEL<ARGUMENTS>
};

/// Writes the cubin, and to standard error what ptxas and NVRTC say. The exit code: 0, 1 when the text does not
/// compile, 2 when there is no such library.
int compileAtRunTime(const RuntimeCompile &job);

} // namespace optiml::gpu

#endif
