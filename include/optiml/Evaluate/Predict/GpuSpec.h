//===- GpuSpec.h - what the performance model knows of a GPU ----*- C++ -*-===//
//
// One JSON file a GPU in data/gpus, also compiled into the programs. Bandwidths are what a good kernel reaches, not the
// data sheet's. Rates are warp instructions per multiprocessor (SM) and clock.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_PREDICT_GPUSPEC_H
#define OPTIML_EVALUATE_PREDICT_GPUSPEC_H

#include "llvm/Support/Error.h"
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace optiml {

struct GpuSpec {
  std::string name;
  unsigned arch = 0;      ///< compute capability × 10
  bool isDefault = false; ///< stands for its compute capability when no GPU is named
#define GPU_NUMBER(type, name, initial) type name = initial;
#include "optiml/Evaluate/Predict/GpuSpec.def"
  struct Rates {
#define GPU_RATE(name) double name = 0;
#include "optiml/Evaluate/Predict/GpuSpec.def"
    double tensor =
        0; ///< products of 16x8 and 8x8 matrices of TF32 numbers by warps; 0: there are no such instructions
  } rates;
  struct Latencies {
#define GPU_LATENCY(name) double name = 0;
#include "optiml/Evaluate/Predict/GpuSpec.def"
  } latencies; ///< in clocks

  unsigned warpsPerSM() const { return maxThreadsPerSM / warpSize; }

  static llvm::Expected<GpuSpec> fromJson(const nlohmann::json &value);
  static llvm::Expected<GpuSpec> load(const std::string &path);
  /// The GPUs that are compiled in, by name.
  static const std::vector<GpuSpec> &all();
  /// By name (case, spaces and dashes do not matter); null when there is none.
  static const GpuSpec *find(llvm::StringRef name);
  /// By what the driver calls a GPU ("NVIDIA H200", "NVIDIA A100-SXM4-80GB"): the longest name within it.
  static const GpuSpec *findOn(llvm::StringRef deviceName);
  /// The one that stands for `arch` (90 for sm_90): of that capability, else of the nearest older, else the oldest.
  static const GpuSpec &forArch(unsigned arch);
};

} // namespace optiml

#endif
