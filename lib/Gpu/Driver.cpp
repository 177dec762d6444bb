//===- Driver.cpp - the CUDA driver, when there is one --------------------===//
#include "optiml/Gpu/Driver.h"

using namespace optiml::gpu;

static bool loadDriver(Driver &table, std::string &why) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    why = "there is no NVIDIA driver on this machine (libcuda.so.1)";
    return false;
  }
#define OPTIML_FUNCTION(NAME) OPTIML_FUNCTION_LOAD(NAME)
#include "optiml/Gpu/DriverFunctions.def"
  return true;
}

const Driver *Driver::get(std::string &why) { return loadOnce(loadDriver, "the NVIDIA driver", why); }

std::string Driver::message(CUresult result) const {
  const char *text = nullptr, *name = nullptr;
  cuGetErrorString(result, &text);
  cuGetErrorName(result, &name);
  return std::string(text ? text : "unknown error") + " (" + (name ? name : std::to_string(result).c_str()) + ")";
}
