//===- Driver.cpp - the CUDA driver, when there is one --------------------===//
#include "optiml/Gpu/Driver.h"

using namespace optiml::gpu;

static bool load(Driver &table, std::string &why) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    why = "there is no NVIDIA driver on this machine (libcuda.so.1)";
    return false;
  }
  OPTIML_CUDA_FUNCTIONS(OPTIML_FUNCTION_LOAD)
  return true;
}

const Driver *Driver::get(std::string &why) {
  struct Loaded {
    Driver table;
    std::string why;
    bool ok;
    Loaded() {
      ok = load(table, why);
      if (!ok && why.rfind("it has", 0) == 0)
        why = "the NVIDIA driver is too old: " + why;
    }
  };
  static const Loaded *loaded = new Loaded; // used until the process ends
  why = loaded->why;
  return loaded->ok ? &loaded->table : nullptr;
}

std::string Driver::message(CUresult result) const {
  const char *text = nullptr, *name = nullptr;
  cuGetErrorString(result, &text);
  cuGetErrorName(result, &name);
  return std::string(text ? text : "unknown error") + " (" + (name ? name : std::to_string(result).c_str()) + ")";
}
