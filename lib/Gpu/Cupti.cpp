//===- Cupti.cpp - CUPTI, when there is one -------------------------------===//
#include "optiml/Gpu/Cupti.h"
#include <cstdlib>
#include <vector>

using namespace optiml::gpu;

static std::vector<std::string> places() {
  std::vector<std::string> files;
  if (const char *given = getenv("OPTIML_CUPTI"); given && *given)
    files.push_back(given);
  const std::string name = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
  files.push_back(name);
  const char *cuda = getenv("CUDA_PATH");
  for (std::string root : {std::string(cuda ? cuda : ""), std::string("/usr/local/cuda")})
    if (!root.empty())
      for (const char *folder : {"/extras/CUPTI/lib64/", "/lib64/", "/targets/x86_64-linux/lib/", "/lib/"})
        files.push_back(root + folder + name);
  return files;
}

static bool load(Cupti &table, std::string &why) {
  void *library = nullptr;
  for (const std::string &file : places())
    if ((library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)))
      break;
  if (!library) {
    why = "CUPTI is not installed here (libcupti, part of the CUDA Toolkit); OPTIML_CUPTI=FILE names it";
    return false;
  }
  OPTIML_CUPTI_FUNCTIONS(OPTIML_FUNCTION_LOAD)
  return true;
}

const Cupti *Cupti::get(std::string &why) {
  struct Loaded {
    Cupti table;
    std::string why;
    bool ok;
    Loaded() {
      ok = load(table, why);
      if (!ok && why.rfind("it has", 0) == 0)
        why = "this CUPTI is too old: " + why;
    }
  };
  static const Loaded *loaded = new Loaded; // used until the process ends
  why = loaded->why;
  return loaded->ok ? &loaded->table : nullptr;
}

std::string Cupti::message(CUptiResult result) const {
  const char *text = nullptr;
  cuptiGetResultString(result, &text);
  return text ? text : "CUPTI error " + std::to_string(int(result));
}
