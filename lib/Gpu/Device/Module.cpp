//===- Module.cpp - a compiled program on the GPU -------------------------===//
#include "Module.h"
#include "optiml/Workload/Signature.h"
#include <dlfcn.h>

using namespace optiml::gpu;

std::unique_ptr<Module> Module::load(Device &device, const std::string &cubin) {
  CUmodule module = nullptr;
  if (!device.ok(device.cu.cuModuleLoad(&module, cubin.c_str()), "the driver does not load the compiled program"))
    return nullptr;
  return std::unique_ptr<Module>(new Module(device, module));
}

Module::~Module() {
  if (!device.lost)
    device.cu.cuModuleUnload(module);
}

/// The kernel under the name that its own compiler gave it; null when there is none, or the driver (before 12.4)
/// cannot list them.
static CUfunction findByDemangledName(CUmodule module, const std::string &name) {
  auto count = reinterpret_cast<CUresult (*)(unsigned *, CUmodule)>(dlsym(RTLD_DEFAULT, "cuModuleGetFunctionCount"));
  auto list = reinterpret_cast<CUresult (*)(CUfunction *, unsigned, CUmodule)>(
      dlsym(RTLD_DEFAULT, "cuModuleEnumerateFunctions"));
  auto nameOf = reinterpret_cast<CUresult (*)(const char **, CUfunction)>(dlsym(RTLD_DEFAULT, "cuFuncGetName"));
  unsigned number = 0;
  if (!count || !list || !nameOf || count(&number, module) != CUDA_SUCCESS)
    return nullptr;
  std::vector<CUfunction> functions(number);
  if (list(functions.data(), number, module) != CUDA_SUCCESS)
    return nullptr;
  for (CUfunction function : functions)
    if (const char *symbol; nameOf(&symbol, function) == CUDA_SUCCESS && optiml::sameFunction(symbol, name))
      return function;
  return nullptr;
}

Module::Kernel *Module::kernel(const std::string &name) {
  auto it = kernels.find(name);
  if (it != kernels.end())
    return &it->second;
  Kernel k;
  const Driver &cu = device.cu;
  CUresult found = cu.cuModuleGetFunction(&k.function, module, name.c_str());
  if (found == CUDA_ERROR_NOT_FOUND && (k.function = findByDemangledName(module, name)))
    found = CUDA_SUCCESS;
  if (!device.ok(found, ("there is no kernel " + name).c_str()))
    return nullptr;
  for (size_t i = 0, offset, size; cu.cuFuncGetParamInfo(k.function, i, &offset, &size) == CUDA_SUCCESS; ++i)
    k.parameters.push_back(size);
  int value = 0;
  if (cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k.function) == CUDA_SUCCESS)
    k.staticShared = unsigned(value);
  if (cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k.function) == CUDA_SUCCESS)
    k.maxThreads = unsigned(value);
  return &kernels.emplace(name, std::move(k)).first->second;
}

CUdeviceptr Module::variable(const std::string &symbol, uint64_t bytes) {
  CUdeviceptr at = 0;
  size_t size = 0;
  if (device.cu.cuModuleGetGlobal(&at, &size, module, symbol.c_str()) != CUDA_SUCCESS || size != bytes)
    return 0;
  return at;
}
