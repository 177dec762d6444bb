//===- Module.h - a compiled program on the GPU -----------------*- C++ -*-===//
#ifndef OPTIML_LIB_GPU_DEVICE_MODULE_H
#define OPTIML_LIB_GPU_DEVICE_MODULE_H

#include "Device.h"
#include <map>
#include <vector>

namespace optiml::gpu {

/// A loaded cubin; unloaded with the object (which a broken context outlives).
class Module {
public:
  /// Null, and Device::error, when the driver refuses it.
  static std::unique_ptr<Module> load(Device &device, const std::string &cubin);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  struct Kernel {
    CUfunction function = nullptr;
    std::vector<size_t> parameters; ///< sizes
    unsigned staticShared = 0, maxThreads = 0;
    unsigned dynamicAllowed = 48 << 10;
  };
  /// By mangled name; null, and Device::error, when there is none.
  Kernel *kernel(const std::string &name);
  /// Where a variable lies; 0 when the module has none of that name and size.
  CUdeviceptr variable(const std::string &symbol, uint64_t bytes);

private:
  Module(Device &device, CUmodule module) : device(device), module(module) {}
  Device &device;
  CUmodule module;
  std::map<std::string, Kernel> kernels;
};

} // namespace optiml::gpu

#endif
