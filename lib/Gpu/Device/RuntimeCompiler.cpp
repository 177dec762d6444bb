//===- RuntimeCompiler.cpp - one text through NVRTC -----------------------===//
//
// NVRTC knows CUDA's own declarations without reading their headers, which takes nvcc most of the time for a small
// kernel. It runs in a process of its own, for a text may make a compiler crash, or take all memory.
//
//===----------------------------------------------------------------------===//
#include "RuntimeCompiler.h"
#include "optiml/Gpu/DynamicLibrary.h"
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

using namespace optiml::gpu;

// As nvrtc.h has them, which not every toolkit brings.
extern "C" {
typedef struct _nvrtcProgram *nvrtcProgram;
typedef int nvrtcResult;
nvrtcResult nvrtcVersion(int *major, int *minor);
const char *nvrtcGetErrorString(nvrtcResult result);
nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int headers,
                               const char *const *texts, const char *const *names);
nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *expression);
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options);
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size);
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin);
}

namespace {
struct Nvrtc {
#define OPTIML_FUNCTION(NAME) OPTIML_FUNCTION_MEMBER(NAME)
#include "NvrtcFunctions.def"
};
} // namespace

static bool load(void *library, Nvrtc &table, std::string &why) {
#define OPTIML_FUNCTION(NAME) OPTIML_FUNCTION_LOAD(NAME)
#include "NvrtcFunctions.def"
  return true;
}

static int refused(const std::string &why, int code) {
  fprintf(stderr, "optiml-worker: error: %s\n", why.c_str());
  return code;
}

// What the user's own headers may include and kernels do not need. They are empty.
static const char *const emptyHeaders[] = {"algorithm",
                                           "array",
                                           "assert.h",
                                           "cassert",
                                           "cfloat",
                                           "chrono",
                                           "climits",
                                           "cmath",
                                           "cstddef",
                                           "cstdint",
                                           "cstdio",
                                           "cstdlib",
                                           "cstring",
                                           "ctime",
                                           "cuda.h",
                                           "fstream",
                                           "functional",
                                           "inttypes.h",
                                           "iomanip",
                                           "iostream",
                                           "limits.h",
                                           "map",
                                           "cuda_runtime.h",
                                           "cuda_runtime_api.h",
                                           "device_launch_parameters.h",
                                           "math.h",
                                           "memory",
                                           "omp.h",
                                           "random",
                                           "sstream",
                                           "stddef.h",
                                           "stdio.h",
                                           "stdlib.h",
                                           "stdint.h",
                                           "string",
                                           "string.h",
                                           "sys/time.h",
                                           "time.h",
                                           "unistd.h",
                                           "utility",
                                           "vector",
                                           "float.h",
                                           "numeric",
                                           "set",
                                           "vector_types.h"};

int optiml::gpu::compileAtRunTime(const RuntimeCompile &job) {
  static constexpr int failed = 1, unusable = 2;
  void *library = dlopen(job.library.c_str(), RTLD_NOW);
  if (!library)
    return refused(dlerror(), unusable);
  Nvrtc nvrtc;
  std::string why;
  if (!load(library, nvrtc, why))
    return refused(job.library + ": " + why, unusable);
  int major = 0, minor = 0;
  nvrtc.nvrtcVersion(&major, &minor);
  if (std::to_string(major) + "." + std::to_string(minor) != job.version)
    return refused(job.library + " is not of version " + job.version, unusable);

  std::ifstream file(job.source);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    return refused("cannot read '" + job.source + "'", failed);
  nvrtcProgram program = nullptr;
  const std::vector<const char *> empty(std::size(emptyHeaders), "");
  nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, text.str().c_str(), job.source.c_str(), int(empty.size()),
                                                empty.data(), emptyHeaders);
  if (result)
    return refused(nvrtc.nvrtcGetErrorString(result), failed);
  std::vector<const char *> options;
  static constexpr std::string_view instantiate = "--instantiate=";
  for (const std::string &option : job.options)
    if (option.compare(0, instantiate.size(), instantiate) != 0)
      options.push_back(option.c_str());
    else if (nvrtcResult wrong = nvrtc.nvrtcAddNameExpression(program, option.c_str() + instantiate.size()))
      return refused(nvrtc.nvrtcGetErrorString(wrong), failed);
  result = nvrtc.nvrtcCompileProgram(program, int(options.size()), options.data());
  size_t size = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) == 0 && size > 1) {
    std::string log(size, '\0');
    nvrtc.nvrtcGetProgramLog(program, log.data());
    fputs(log.c_str(), stderr);
  }
  if (result)
    return refused(nvrtc.nvrtcGetErrorString(result), failed);
  if (nvrtc.nvrtcGetCUBINSize(program, &size))
    return refused("NVRTC made no machine code", failed);
  std::string cubin(size, '\0');
  nvrtc.nvrtcGetCUBIN(program, cubin.data());
  std::ofstream out(job.cubin, std::ios::binary);
  out.write(cubin.data(), std::streamsize(cubin.size()));
  out.close();
  return out ? 0 : refused("cannot write '" + job.cubin + "'", failed);
}
