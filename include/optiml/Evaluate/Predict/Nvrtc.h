//===- Nvrtc.h - kernels alone, through NVRTC -------------------*- C++ -*-===//
//
// NVRTC is nvcc's device compiler as a library that has CUDA's declarations built in: a text with nothing but kernels
// (DeviceText.h) takes it a quarter of nvcc's time. optiml-worker runs it, in a process for each text.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_NVRTC_H
#define OPTIML_EVALUATE_PREDICT_NVRTC_H

#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Frontend/Toolchain.h"
#include <optional>

namespace optiml {

struct Nvrtc {
  std::string worker;  ///< optiml-worker
  std::string library; ///< libnvrtc.so
  std::string version; ///< "13.0", as nvcc's
  std::string cudaPath;
  /// nullopt where the toolkit has none, or OptiML's worker is missing.
  static std::optional<Nvrtc> find(const Toolchain &toolchain);
  /// compileCubin() by NVRTC. `options`: nvrtcOptions() of the request's flags. `kernels`: instantiations of templates
  /// that nothing in the text asks for.
  llvm::Expected<CubinResult> compile(const CubinRequest &request, const std::vector<std::string> &options,
                                      const std::vector<std::string> &kernels) const;
};

/// NVRTC's options for these of nvcc (cubinFlags()); nullopt where one has no counterpart.
std::optional<std::vector<std::string>> nvrtcOptions(const std::vector<std::string> &flags);

/// Whether all kernels that both cubins have are about as long, and there are some: they come from the same source.
bool haveLikeCode(const std::string &cubin, const std::string &other);

} // namespace optiml

#endif
