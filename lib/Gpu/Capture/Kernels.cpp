//===- Kernels.cpp - what is known of the program's kernels ---------------===//
#include "Kernels.h"
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <set>

using namespace optiml;
using namespace optiml::gpu;

void LoadedModules::loaded(uint32_t id, const void *cubin, size_t bytes) {
  auto symbols = std::make_shared<CubinSymbols>();
  if (!cubin || !readCubin(cubin, bytes, *symbols))
    return; // a fat binary, or nothing at all: its kernels have no known variables
  std::lock_guard lock(mutex);
  modules[id] = std::move(symbols);
}

void LoadedModules::unloaded(uint32_t id) {
  invalidate();
  std::lock_guard lock(mutex);
  modules.erase(id);
}

std::vector<std::shared_ptr<const CubinSymbols>> LoadedModules::defining(const std::string &kernel) const {
  std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<const CubinSymbols>> result;
  for (auto it = modules.rbegin(); it != modules.rend(); ++it)
    if (std::count(it->second->kernels.begin(), it->second->kernels.end(), kernel))
      result.push_back(it->second);
  return result;
}

bool Kernels::select(const char *text, std::string &error) {
  int code = regcomp(&expression, text, REG_EXTENDED | REG_NOSUB);
  if (code == 0)
    return selective = true;
  char message[256];
  regerror(code, &expression, message, sizeof message);
  error = message;
  return false;
}

KernelInfo &Kernels::get(CUfunction handle, const char *symbolName) {
  if (generation != modules.generation()) { // a handle may mean another function now
    known.clear();
    generation = modules.generation();
  }
  auto [it, isNew] = known.try_emplace(handle);
  if (isNew)
    describe(handle, symbolName, it->second);
  return it->second;
}

/// Of a (demangled) type: "float*", "int const&", "float (*) [4]".
static bool isPointerType(const std::string &type) {
  return !type.empty() && (type.back() == '*' || type.back() == '&' || type.find("(*)") != std::string::npos ||
                           type.find("(&)") != std::string::npos);
}

void Kernels::describe(CUfunction handle, const char *symbolName, KernelInfo &info) {
  const char *name = nullptr;
  if (driver.cuFuncGetName(&name, handle) == CUDA_SUCCESS && name) {
    info.function = handle;
  } else if (driver.cuKernelGetName(&name, reinterpret_cast<CUkernel>(handle)) == CUDA_SUCCESS && name) {
    info.kernel = reinterpret_cast<CUkernel>(handle);
    if (driver.cuKernelGetFunction(&info.function, info.kernel) != CUDA_SUCCESS)
      info.function = nullptr;
  } else {
    name = symbolName;
    info.function = handle;
  }
  info.symbol = name ? name : "";
  info.name = demangled(info.symbol);
  // A workload's reader takes names of up to 65,536 bytes.
  constexpr size_t longest = 60000;
  if (info.symbol.empty() || info.symbol.size() > longest)
    info.problem = info.symbol.empty() ? "its name is not known" : "its name is too long";
  if (info.symbol.size() > longest)
    info.symbol.resize(100);
  if (info.name.size() > longest)
    info.name = info.symbol;
  if (selective)
    info.selected = regexec(&expression, info.symbol.c_str(), 0, nullptr, 0) == 0 ||
                    regexec(&expression, info.name.c_str(), 0, nullptr, 0) == 0;
  if (!info.selected || !info.problem.empty())
    return;
  if (!readParameters(info)) {
    info.problem = "the driver does not tell its parameters";
    return;
  }
  std::vector<std::string> types = parameterTypes(info.symbol);
  info.typesKnown = types.size() == info.parameters.size();
  for (size_t i = 0; info.typesKnown && i < types.size(); ++i)
    info.parameters[i].pointer = info.parameters[i].bytes == 8 && isPointerType(types[i]);
}

/// A parameter beyond the last is an invalid value; any other error leaves the list unknown.
bool Kernels::readParameters(KernelInfo &info) {
  for (bool asKernel : {false, true}) {
    if (asKernel ? !info.kernel : !info.function)
      continue;
    info.parameters.clear();
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < 4096; ++i) {
      KernelParameter p;
      result = asKernel ? driver.cuKernelGetParamInfo(info.kernel, i, &p.offset, &p.bytes)
                        : driver.cuFuncGetParamInfo(info.function, i, &p.offset, &p.bytes);
      if (result != CUDA_SUCCESS)
        break;
      info.parameters.push_back(p);
    }
    if (result == CUDA_ERROR_INVALID_VALUE)
      return true;
  }
  return false;
}

/// 0 when the driver does not find it, or finds it with another size.
uint64_t Kernels::addressOf(const KernelInfo &info, const CubinVariable &variable) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  CUmodule module = nullptr;
  const char *name = variable.name.c_str();
  if (info.function && driver.cuFuncGetModule(&module, info.function) == CUDA_SUCCESS && module &&
      driver.cuModuleGetGlobal(&address, &bytes, module, name) == CUDA_SUCCESS && bytes == variable.bytes)
    return address;
  CUlibrary library = nullptr;
  if (!info.kernel || driver.cuKernelGetLibrary(&library, info.kernel) != CUDA_SUCCESS)
    return 0;
  if (variable.managed && driver.cuLibraryGetManaged(&address, &bytes, library, name) == CUDA_SUCCESS &&
      bytes == variable.bytes)
    return address;
  if (driver.cuLibraryGetGlobal(&address, &bytes, library, name) == CUDA_SUCCESS && bytes == variable.bytes)
    return address;
  return 0;
}

void Kernels::findVariables(KernelInfo &info) {
  if (info.variablesKnown)
    return;
  std::vector<std::shared_ptr<const CubinSymbols>> cubins = modules.defining(info.symbol);
  info.variablesKnown = !cubins.empty();
  std::set<std::string> seen;
  for (const auto &cubin : cubins)
    for (const CubinVariable &v : cubin->variables) {
      if (!seen.insert(v.name).second)
        continue;
      if (uint64_t address = addressOf(info, v))
        info.variables.push_back({cubin, &v, address});
      else
        info.lostVariables.push_back(v.name);
    }
}
