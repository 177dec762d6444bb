//===- Modules.h - kernels and variables the program registered -*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_MODULES_H
#define OPTIML_LIB_EMULATOR_RUNTIME_MODULES_H

#include "Memory.h"
#include "optiml/Emulator/ABI.h"
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace optiml::emu {

struct Kernel {
  const KernelDesc *desc = nullptr;
  const ModuleDesc *module = nullptr;
  int maxDynamicShared = 0; ///< set by cudaFuncSetAttribute; 0: the default limit
  int carveout = -1;
};

/// Read-only parts of the loaded program or module (string literals, constant tables that are no registered variable).
struct ImageRange {
  uint64_t begin, end;
};

/// Filled by constructors, before anything else runs; lives for ever.
class Modules {
public:
  static Modules &get();
  void add(const ModuleDesc *module);
  void addFunction(const void *hostFunction, const char *symbol);
  void addVariable(const void *hostVariable, const char *symbol);

  /// The kernel behind a host function pointer, or null.
  Kernel *kernel(const void *hostFunction);
  Kernel *kernelBySymbol(const std::string &symbol);
  /// The device variable behind a host one (cudaMemcpyToSymbol), or null.
  Allocation *variable(const void *hostVariable);
  Allocation *variableBySymbol(const std::string &symbol);
  std::vector<Allocation *> variablesOf(const ModuleDesc *module);
  /// Whether [address, address + bytes) lies in a read-only part of the program's image.
  const ImageRange *readOnlyImage(uint64_t address, uint64_t bytes);

private:
  std::mutex mutex;
  std::vector<const ModuleDesc *> modules;
  std::unordered_map<std::string, Kernel> kernels;
  std::unordered_map<std::string, Allocation *> variables;
  std::unordered_map<const void *, std::string> functionNames, variableNames;
  std::vector<ImageRange> images;
};

} // namespace optiml::emu

#endif
