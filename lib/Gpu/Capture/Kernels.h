//===- Kernels.h - what is known of the program's kernels -------*- C++ -*-===//
//
// Names, parameters and module variables of the functions that a program launches. A handle may be a CUfunction or a
// CUkernel, which belongs to no context; both are asked the ways that answer.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_CAPTURE_KERNELS_H
#define OPTIML_LIB_GPU_CAPTURE_KERNELS_H

#include "optiml/Gpu/CubinSymbols.h"
#include "optiml/Gpu/Driver.h"
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <regex.h>
#include <unordered_map>

namespace optiml::gpu {

/// The cubins that are loaded now. Any thread may use it.
class LoadedModules {
public:
  void loaded(uint32_t id, const void *cubin, size_t bytes);
  void unloaded(uint32_t id);
  /// Those that define the kernel, the newest first.
  std::vector<std::shared_ptr<const CubinSymbols>> defining(const std::string &kernel) const;
  /// Counts what makes earlier handles of functions invalid.
  uint64_t generation() const { return unloads; }
  void invalidate() { ++unloads; }

private:
  mutable std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<const CubinSymbols>> modules;
  std::atomic<uint64_t> unloads = 0;
};

struct KernelParameter {
  size_t offset = 0, bytes = 0;
  bool pointer = false; ///< by its type
};

struct KernelVariable {
  std::shared_ptr<const CubinSymbols> module; ///< keeps `what` alive
  const CubinVariable *what = nullptr;
  uint64_t address = 0;
};

struct KernelInfo {
  std::string symbol, name;
  std::string problem;  ///< why launches of it cannot be captured; usually empty
  bool selected = true; ///< the user wants it captured
  CUfunction function = nullptr;
  CUkernel kernel = nullptr; ///< null when the program has only a CUfunction
  std::vector<KernelParameter> parameters;
  bool typesKnown = false; ///< parameters[i].pointer says something
  bool variablesKnown = false;
  std::vector<KernelVariable> variables;
  std::vector<std::string> lostVariables; ///< that the driver does not find
};

/// Not thread-safe.
class Kernels {
public:
  Kernels(const Driver &driver, const LoadedModules &modules) : driver(driver), modules(modules) {}
  /// Only kernels whose mangled or demangled name matches a POSIX extended regular expression are selected. False and
  /// `error` when it is none.
  bool select(const char *expression, std::string &error);
  /// `symbolName` is CUPTI's, used when the driver knows no name. Valid until the next call.
  KernelInfo &get(CUfunction handle, const char *symbolName);
  /// Fills in `variables`. Call when the kernel's module has been loaded.
  void findVariables(KernelInfo &info);

private:
  void describe(CUfunction handle, const char *symbolName, KernelInfo &info);
  bool readParameters(KernelInfo &info);
  uint64_t addressOf(const KernelInfo &info, const CubinVariable &variable);

  const Driver &driver;
  const LoadedModules &modules;
  std::unordered_map<CUfunction, KernelInfo> known;
  uint64_t generation = 0; ///< that `known` is of
  regex_t expression;
  bool selective = false;
};

} // namespace optiml::gpu

#endif
