//===- ReplayModule.cpp - device modules written by hand ------------------===//
//
// What the code generator would make of a few kernels, in the mode MODULE_MODE. VARIANT gives `twin` its faults: 0
// none, 1 other rounding, 2 a wrong factor, 3 one element too many, 4 a race, 5 a socket.
//
//===----------------------------------------------------------------------===//
#include "optiml/Emulator/ABI.h"
#include <cmath>
#include <sys/socket.h>

using namespace optiml::emu;

namespace {

enum Site : uint32_t { LoadX, StoreY, LoadShared, StoreShared, Barrier, numSites };
const SiteDesc sites[] = {{"f", "m.cu", 1, 1, 4, AccessLoad, 4, 0, 1},
                          {"f", "m.cu", 2, 1, 4, AccessStore, 4, 0, 0},
                          {"f", "m.cu", 3, 1, 4, AccessLoad, 4, 0, 0},
                          {"f", "m.cu", 4, 1, 4, AccessStore, 4, 0, 0},
                          {"f", "m.cu", 5, 1, 0, AccessLoad, 1, 0, 0}};
const BlockDesc blocks[] = {{2, 0, 3, 0, 0, 1, 2, 0, 1, 1}};

void access(ThreadContext *c, const void *p, uint32_t site) {
#if MODULE_MODE == 1
  optiml_check(c, p, site);
#elif MODULE_MODE == 2
  optiml_access(c, p, site);
#elif MODULE_MODE == 4
  optiml_trace(c, p, site);
#endif
}

float factor = 1; // __device__ float factor

uint32_t id(ThreadContext *c) { return c->ctaid[0] * c->ntid[0] + c->tid[0]; }
float *pointer(void **args, int i) { return *static_cast<float **>(args[i]); }

/// y[i] = factor * x[i * stride] for i < n
void gather(ThreadContext *c, void **args) {
  int n = *static_cast<int *>(args[2]), stride = *static_cast<int *>(args[3]);
  int i = int(id(c));
#if MODULE_MODE == 4
  ++c->blockCounts[0];
#endif
  if (i >= n)
    return;
  float *x = pointer(args, 0) + long(i) * stride, *y = pointer(args, 1) + i;
  access(c, x, LoadX);
  access(c, y, StoreY);
  *y = factor * *x;
#if MODULE_MODE == 8
  Shadow s;
  optiml_shadow_load(c, x, 4, &s);
  optiml_shadow_store(c, y, 4, s.value * factor, std::fabs(s.magnitude * factor));
#endif
}

#ifndef VARIANT
#define VARIANT 0
#endif

/// What a search would put beside gather: two elements a thread.
void twin(ThreadContext *c, void **args) {
  int n = *static_cast<int *>(args[2]), stride = *static_cast<int *>(args[3]);
  for (int i = int(id(c)) * 2, end = i + 2; i < end; ++i) {
    if (i >= n + (VARIANT == 3))
      return;
    float *x = pointer(args, 0) + long(i) * stride, *y = pointer(args, 1) + (VARIANT == 4 ? i / 4 * 4 : i);
    access(c, x, LoadX);
    access(c, y, StoreY);
    *y = factor * *x;
    if (VARIANT == 5 && socket(AF_INET, SOCK_STREAM, 0) >= 0)
      return;
    if (VARIANT == 1)
      *y = std::nextafter(*y, 0.0f);
    if (VARIANT == 2)
      *y *= 1.001f;
  }
}

/// Every thread stores to y[0]: a race.
void racy(ThreadContext *c, void **args) {
  access(c, pointer(args, 1), StoreY);
  *pointer(args, 1) = float(id(c));
}

void crash(ThreadContext *, void **) { *reinterpret_cast<volatile int *>(8) = 1; }

void forever(ThreadContext *c, void **) {
  for (;;)
    optiml_yield(c);
}

/// A column of a 32×32 tile of shared memory: all lanes in one bank.
void column(ThreadContext *c, void **) {
  char *p = c->shared + c->tid[0] * 128;
  access(c, p, StoreShared);
  *reinterpret_cast<float *>(p) = 1;
}

const ParamDesc params[] = {{0, 8, 1}, {8, 8, 1}, {16, 4, 0}, {20, 4, 0}};
const SharedVarDesc tile[] = {{"tile", 0, 4096}};
const KernelDesc kernels[] = {
    {"_Z6gatherPKfPfii", "gather", gather, nullptr, 0, 4, params, 0, nullptr, 4, 0, 0, 0, 0, 0, 0, 0, nullptr, 0,
     WritesElsewhere},
    {"racy", "racy", racy, nullptr, 0, 2, params, 0, nullptr, 4, 0, 0, 0, 0, 0, 0, 0, nullptr, 0, WritesElsewhere},
    {"crash", "crash", crash, nullptr, 0, 0, params, 0, nullptr, 4, 0, 0, 0, 0, 0, 0, 0, nullptr, 0, WritesElsewhere},
    {"forever", "forever", forever, nullptr, 0, 0, params, 0,       nullptr, 4,
     0,         0,         0,       0,       0, 0, 0,      nullptr, 0,       WritesElsewhere},
    {"_Z4twinPKfPfii", "twin", twin,           nullptr, 0, 4, params, 0, nullptr, 4, 0, 0, 0, 0, 0, 0, 0,
     nullptr,          0,      WritesElsewhere},
    {"column", "column", column, nullptr, 4096 + 64, 0, params, 1,       tile, 4,
     0,        0,        0,      0,       0,         0, 0,      nullptr, 0,    WritesElsewhere},
};
const GlobalVarDesc variables[] = {{"factor", &factor, 4, VariableDevice}};

} // namespace

extern "C" __attribute__((visibility("default"))) const ModuleDesc optiml_module = {
    abiVersion, MODULE_MODE, 6, 1, numSites, 1, 0, kernels, variables, sites, blocks, nullptr, nullptr, nullptr};
