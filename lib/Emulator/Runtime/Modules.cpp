//===- Modules.cpp - kernels and variables the program registered ---------===//
#include "Modules.h"
#include <cstdio>
#include <link.h>

using namespace optiml::emu;

/// "k" of "void ns::k<float>(float*)" or "ns::k<float>".
static std::string identifierOf(std::string name) {
  static const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  name = name.substr(0, name.find('('));
  int depth = 0;
  std::string plain; // without template arguments
  for (char c : name) {
    depth += c == '<';
    if (!depth)
      plain += c;
    depth -= c == '>';
  }
  size_t begin = plain.find_last_of(": ");
  return begin == std::string::npos ? plain : plain.substr(begin + 1);
}

Modules &Modules::get() {
  static Modules *modules = new Modules;
  return *modules;
}

namespace {
struct ImageSearch {
  uint64_t address;
  std::vector<ImageRange> *into;
};
} // namespace

/// Collects the read-only ranges of the object that holds `address`.
static int collectReadOnly(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<ImageSearch *>(data);
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &p = info->dlpi_phdr[i];
    uint64_t begin = info->dlpi_addr + p.p_vaddr;
    here |= p.p_type == PT_LOAD && search.address >= begin && search.address < begin + p.p_memsz;
  }
  if (!here)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &p = info->dlpi_phdr[i];
    if ((p.p_type == PT_LOAD && !(p.p_flags & PF_W)) || p.p_type == PT_GNU_RELRO)
      search.into->push_back({info->dlpi_addr + p.p_vaddr, info->dlpi_addr + p.p_vaddr + p.p_memsz});
  }
  return 1;
}

void Modules::add(const ModuleDesc *module) {
  if (module->version != abiVersion) {
    fprintf(
        stderr,
        "optiml: error: a device module was built for version %u of the emulator's runtime, this is %u: rebuild it\n",
        module->version, abiVersion);
    return;
  }
  std::lock_guard lock(mutex);
  modules.push_back(module);
  for (uint32_t i = 0; i < module->numKernels; ++i) {
    Kernel &k = kernels[module->kernels[i].symbol];
    if (!k.desc)
      k = Kernel{&module->kernels[i], module};
  }
  for (uint32_t i = 0; i < module->numVars; ++i) {
    const GlobalVarDesc &v = module->vars[i];
    if (!v.size)
      continue;
    Allocation *a = Memory::get().addSymbol(v.address, v.size, v.symbol, v.kind);
    if (v.kind != VariableFixed)
      variables[v.symbol] = a;
  }
  ImageSearch search{reinterpret_cast<uint64_t>(module), &images};
  dl_iterate_phdr(collectReadOnly, &search);
}

void Modules::addFunction(const void *hostFunction, const char *symbol) {
  std::lock_guard lock(mutex);
  functionNames[hostFunction] = symbol;
}

void Modules::addVariable(const void *hostVariable, const char *symbol) {
  std::lock_guard lock(mutex);
  variableNames[hostVariable] = symbol;
}

Kernel *Modules::kernel(const void *hostFunction) {
  std::lock_guard lock(mutex);
  auto name = functionNames.find(hostFunction);
  if (name == functionNames.end())
    return nullptr;
  auto it = kernels.find(name->second);
  return it == kernels.end() ? nullptr : &it->second;
}

Kernel *Modules::kernelBySymbol(const std::string &symbol) {
  std::lock_guard lock(mutex);
  auto it = kernels.find(symbol);
  if (it != kernels.end())
    return &it->second;
  // Launch plans name the kernels they add by their plain identifiers.
  Kernel *found = nullptr;
  for (auto &[name, k] : kernels)
    if (identifierOf(k.desc->name) == symbol) {
      if (found)
        return nullptr;
      found = &k;
    }
  return found;
}

Allocation *Modules::variable(const void *hostVariable) {
  std::lock_guard lock(mutex);
  auto name = variableNames.find(hostVariable);
  if (name == variableNames.end())
    return nullptr;
  auto it = variables.find(name->second);
  return it == variables.end() ? nullptr : it->second;
}

Allocation *Modules::variableBySymbol(const std::string &symbol) {
  std::lock_guard lock(mutex);
  auto it = variables.find(symbol);
  return it == variables.end() ? nullptr : it->second;
}

std::vector<Allocation *> Modules::variablesOf(const ModuleDesc *module) {
  std::lock_guard lock(mutex);
  std::vector<Allocation *> result;
  for (uint32_t i = 0; i < module->numVars; ++i) {
    auto it = variables.find(module->vars[i].symbol);
    if (it != variables.end() && module->vars[i].kind != VariableFixed)
      result.push_back(it->second);
  }
  return result;
}

const ImageRange *Modules::readOnlyImage(uint64_t address, uint64_t bytes) {
  for (const ImageRange &r : images)
    if (address >= r.begin && bytes <= r.end - r.begin && address - r.begin <= r.end - r.begin - bytes)
      return &r;
  return nullptr;
}

extern "C" void optiml_register_module(const ModuleDesc *module) { Modules::get().add(module); }
