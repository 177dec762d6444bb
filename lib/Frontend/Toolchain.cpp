//===- Toolchain.cpp - where nvcc, CUDA and Clang's headers are -----------===//
//
// Each piece has an environment variable that overrides the search, and an error that names it.
//
//===----------------------------------------------------------------------===//
#include "optiml/Frontend/Toolchain.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cstdlib>

using namespace optiml;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static std::string environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static std::string join(llvm::StringRef a, llvm::StringRef b) {
  llvm::SmallString<256> result(a);
  path::append(result, b);
  path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

/// `name` may be a path or a program on PATH.
static std::string locate(const std::string &name) {
  if (name.find('/') != std::string::npos)
    return fs::can_execute(name) ? name : "";
  return findOnPath(name);
}

static llvm::Expected<std::string> findNvcc() {
  if (std::string name = environment("OPTIML_NVCC"); !name.empty()) {
    std::string nvcc = locate(name);
    if (nvcc.empty())
      return makeError("OPTIML_NVCC is set to '{0}', which is no program", name);
    return nvcc;
  }
  std::string cuda = environment("CUDA_PATH");
  if (!cuda.empty() && fs::can_execute(cuda + "/bin/nvcc"))
    return cuda + "/bin/nvcc";
  if (std::string nvcc = findOnPath("nvcc"); !nvcc.empty())
    return nvcc;
  if (fs::can_execute("/usr/local/cuda/bin/nvcc"))
    return std::string("/usr/local/cuda/bin/nvcc");
  return makeError("nvcc was not found on PATH, in CUDA_PATH or in /usr/local/cuda; install NVIDIA's CUDA toolkit "
                   "(https://developer.nvidia.com/cuda-downloads) and set CUDA_PATH, or point OPTIML_NVCC at nvcc");
}

static llvm::Expected<std::string> findCuda(const std::string &nvcc) {
  llvm::SmallString<256> real;
  if (fs::real_path(nvcc, real))
    real = nvcc;
  const std::string candidates[] = {path::parent_path(path::parent_path(nvcc)).str(),
                                    path::parent_path(path::parent_path(real)).str(), environment("CUDA_PATH"),
                                    environment("CUDA_HOME"), "/usr/local/cuda"};
  for (const std::string &candidate : candidates)
    if (!candidate.empty() && fs::exists(candidate + "/include/cuda_runtime.h"))
      return candidate;
  return makeError("no include/cuda_runtime.h beside {0}; set CUDA_PATH to the CUDA toolkit's folder", nvcc);
}

/// Of GCC; Clang has the header only where its OpenMP library is installed, and then in its own folder.
static std::string findOpenmpHeaders(const std::string &hostCxx) {
  llvm::Expected<ProcessResult> result = runProcess({hostCxx, "-print-file-name=include"});
  if (!result) {
    llvm::consumeError(result.takeError());
    return "";
  }
  std::string folder = llvm::StringRef(result->out).trim().str();
  return fs::exists(folder + "/omp.h") ? folder : "";
}

llvm::Expected<Toolchain> Toolchain::find(const char *argv0) {
  static int anchor;
  std::string program = fs::getMainExecutable(argv0, &anchor);
  std::string prefix = path::parent_path(path::parent_path(program)).str();

  Toolchain result;
  if (llvm::Error error = findNvcc().moveInto(result.nvcc))
    return error;
  if (llvm::Error error = findCuda(result.nvcc).moveInto(result.cudaPath))
    return error;

  const std::string resourceDirs[] = {environment("OPTIML_RESOURCE_DIR"), join(prefix, "lib/clang/22"),
                                      OPTIML_LLVM_RESOURCE_DIR};
  for (const std::string &candidate : resourceDirs)
    if (result.resourceDir.empty() && !candidate.empty() && fs::exists(candidate + "/include/stddef.h"))
      result.resourceDir = candidate;
  if (result.resourceDir.empty())
    return makeError("Clang 22's own headers were not found in {0} or {1}; install them with: apt-get install "
                     "libclang-common-22-dev (or set OPTIML_RESOURCE_DIR)",
                     join(prefix, "lib/clang/22"), OPTIML_LLVM_RESOURCE_DIR);

  if (std::string name = environment("OPTIML_HOST_CXX"); !name.empty()) {
    result.hostCxx = locate(name);
    if (result.hostCxx.empty())
      return makeError("OPTIML_HOST_CXX is set to '{0}', which is no program", name);
  }
  for (const char *name : {"c++", "g++", "clang++-22", "clang++"})
    if (result.hostCxx.empty())
      result.hostCxx = findOnPath(name);
  if (result.hostCxx.empty())
    return makeError("no C++ compiler to link with (c++, g++, clang++-22); install one with: apt-get install g++");

  if (!fs::exists(result.resourceDir + "/include/omp.h"))
    result.openmpHeaders = findOpenmpHeaders(result.hostCxx);
  result.libDir = join(prefix, "lib");
  return result;
}

std::string Toolchain::cudaVersion() const {
  auto header = readFile(cudaPath + "/include/cuda_runtime_api.h");
  if (!header) {
    llvm::consumeError(header.takeError());
    return "";
  }
  unsigned version = 0; // 1000 · major + 10 · minor
  llvm::StringRef number = llvm::StringRef(*header).split("#define CUDART_VERSION").second.ltrim();
  if (number.consumeInteger(10, version))
    return "";
  return llvm::formatv("{0}.{1}", version / 1000, version % 1000 / 10);
}
