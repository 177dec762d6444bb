//===- HandModule.cpp - device modules written by hand --------------------===//
#include "HandModule.h"

using namespace hand;

const SiteDesc *hand::sites() {
  static SiteDesc all[numSites] = {
      {"f", "k.cu", 10, 1, 4, AccessLoad, 4, 0, 0},         {"f", "k.cu", 11, 1, 4, AccessStore, 4, 0, 0},
      {"f", "k.cu", 12, 1, 1, AccessLoad, 1, 0, 0},         {"f", "k.cu", 13, 1, 4, AccessAtomic, 4, 0, 0},
      {"f", "k.cu", 14, 1, 4, AccessVolatileLoad, 4, 0, 0}, {"f", "k.cu", 15, 1, 4, AccessVolatileStore, 4, 0, 0},
      {"f", "k.cu", 16, 1, 0, AccessLoad, 1, 0, 0},         {"f", "k.cu", 17, 1, 0, AccessLoad, 1, 0, 0},
      {"f", "k.cu", 18, 1, 0, AccessLoad, 1, 0, 0},         {"f", "k.cu", 19, 1, 4, AccessStore, 4, 0, 0},
  };
  return all;
}

const void *hand::addKernel(const std::string &name, uint32_t mode, ThreadFn thread, unsigned numParams,
                            std::vector<SharedVarDesc> shared, bool warpOps, ThreadFn block) {
  struct Keep {
    std::string name;
    std::vector<SharedVarDesc> shared;
    std::vector<ParamDesc> params;
    KernelDesc kernel{};
    ModuleDesc module{};
  };
  auto *k = new Keep{name, std::move(shared), {}, {}, {}};
  for (unsigned i = 0; i < numParams; ++i)
    k->params.push_back({8 * i, 8, 1});
  uint32_t staticShared = 0;
  for (const SharedVarDesc &v : k->shared)
    staticShared = v.offset + v.size + 64;
  k->kernel = {k->name.c_str(),
               k->name.c_str(),
               thread,
               block,
               staticShared,
               numParams,
               k->params.data(),
               uint32_t(k->shared.size()),
               k->shared.data(),
               4,
               warpOps,
               0,
               0};
  k->kernel.writesBesides = WritesElsewhere;
  k->module = {abiVersion, mode,    1,       0,       numSites, 0,       0,
               &k->kernel, nullptr, sites(), nullptr, nullptr,  nullptr, nullptr};
  optiml_register_module(&k->module);
  __cudaRegisterFunction(nullptr, reinterpret_cast<const char *>(k), nullptr, k->name.c_str(), -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  return k;
}

cudaError_t hand::launch(const void *kernel, dim3 grid, dim3 block, std::vector<void *> pointers, size_t shared) {
  std::vector<void *> args;
  for (void *&p : pointers)
    args.push_back(&p);
  return cudaLaunchKernel(kernel, grid, block, args.data(), shared, nullptr);
}
