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

static bool loadCupti(Cupti &table, std::string &why) {
  void *library = nullptr;
  for (const std::string &file : places())
    if ((library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)))
      break;
  if (!library) {
    why = "CUPTI is not installed here (libcupti, part of the CUDA Toolkit); OPTIML_CUPTI=FILE names it";
    return false;
  }
#define OPTIML_FUNCTION(NAME) OPTIML_FUNCTION_LOAD(NAME)
#include "optiml/Gpu/CuptiFunctions.def"
  return true;
}

const Cupti *Cupti::get(std::string &why) { return loadOnce(loadCupti, "this CUPTI", why); }

std::string Cupti::message(CUptiResult result) const {
  const char *text = nullptr;
  cuptiGetResultString(result, &text);
  return text ? text : "CUPTI error " + std::to_string(int(result));
}
