//===- HandModule.h - device modules written by hand ------------*- C++ -*-===//
//
// Stands for the code generator: kernels are lambdas over ThreadContext, sites are numbered lines.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_UNITTESTS_HANDMODULE_H
#define OPTIML_UNITTESTS_HANDMODULE_H

#include "optiml/Emulator/ABI.h"
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace hand {

using namespace optiml::emu;

/// Sites of every module: number n is line 10 + n.
enum Site : uint32_t {
  Load4,
  Store4,
  Load1,
  Atomic4,
  VolatileLoad4,
  VolatileStore4,
  BarrierA,
  BarrierB,
  WarpA,
  Store4B,
  numSites
};
const SiteDesc *sites();

/// Registers a module with one kernel and returns the pointer to launch it by. `name` must be unique in the program.
/// Parameters are pointers. Lives for ever, as modules do.
const void *addKernel(const std::string &name, uint32_t mode, ThreadFn thread, unsigned numParams,
                      std::vector<SharedVarDesc> shared = {}, bool warpOps = false, ThreadFn block = nullptr);

inline float &at(void **args, int i, size_t index) { return (*static_cast<float **>(args[i]))[index]; }
inline uint32_t globalId(ThreadContext *c) { return c->ctaid[0] * c->ntid[0] + c->tid[0]; }

/// Launches with pointer arguments.
cudaError_t launch(const void *kernel, dim3 grid, dim3 block, std::vector<void *> pointers, size_t shared = 0);

} // namespace hand

extern "C" void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *,
                                       dim3 *, int *);

#endif
