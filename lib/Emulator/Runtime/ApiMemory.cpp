//===- ApiMemory.cpp - allocating and describing memory -------------------===//
#include "Api.h"
#include "AroundLaunch.h"
#include "Memory.h"
#include "Modules.h"
#include "Queue.h"
#include <cstring>

using namespace optiml::emu;

static cudaError_t allocate(void **into, size_t bytes, MemoryKind kind, const char *origin, unsigned flags = 0) {
  if (!into)
    return result(cudaErrorInvalidValue);
  *into = nullptr;
  if (!bytes)
    return cudaSuccess;
  Allocation *a = Memory::get().allocate(bytes, kind, origin);
  if (!a)
    return result(cudaErrorMemoryAllocation);
  a->flags = flags;
  if (kind != MemoryKind::Device)
    noteMayBeLate();
  *into = reinterpret_cast<void *>(a->address);
  return cudaSuccess;
}

static cudaError_t release(void *pointer, bool host) {
  if (!pointer)
    return cudaSuccess;
  Allocation *a = Memory::get().find(reinterpret_cast<uint64_t>(pointer));
  bool fits = a && a->address == reinterpret_cast<uint64_t>(pointer) &&
              (host ? a->kind == MemoryKind::Host : a->kind == MemoryKind::Device || a->kind == MemoryKind::Managed);
  if (fits)
    logLastContent(*a);
  return fits && Memory::get().release(a->address) ? cudaSuccess : result(cudaErrorInvalidValue);
}

/// What is at `p` in pinned or registered memory of the host; null elsewhere.
static Allocation *hostMemory(const void *p) {
  Allocation *a = Memory::get().find(reinterpret_cast<uint64_t>(p));
  return a && (a->kind == MemoryKind::Host || a->kind == MemoryKind::Registered) ? a : nullptr;
}

extern "C" {

cudaError_t cudaMalloc(void **p, size_t bytes) { return allocate(p, bytes, MemoryKind::Device, "cudaMalloc"); }
cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags) {
  if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return result(cudaErrorInvalidValue);
  return allocate(p, bytes, MemoryKind::Managed, "cudaMallocManaged");
}
cudaError_t cudaMallocHost(void **p, size_t bytes) { return allocate(p, bytes, MemoryKind::Host, "cudaMallocHost"); }
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags) {
  return allocate(p, bytes, MemoryKind::Host, "cudaHostAlloc", flags);
}
cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream) {
  return validStream(stream) ? allocate(p, bytes, MemoryKind::Device, "cudaMallocAsync")
                             : result(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(p, bytes, stream);
}

static constexpr size_t pitchUnit = 512;
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height) {
  if (!pitch || !width || !height)
    return result(cudaErrorInvalidValue);
  *pitch = (width + pitchUnit - 1) / pitchUnit * pitchUnit;
  return allocate(p, *pitch * height, MemoryKind::Device, "cudaMallocPitch");
}
cudaError_t cudaMalloc3D(cudaPitchedPtr *into, cudaExtent extent) {
  if (!into || !extent.width || !extent.height || !extent.depth)
    return result(cudaErrorInvalidValue);
  into->pitch = (extent.width + pitchUnit - 1) / pitchUnit * pitchUnit;
  into->xsize = extent.width;
  into->ysize = extent.height;
  return allocate(&into->ptr, into->pitch * extent.height * extent.depth, MemoryKind::Device, "cudaMalloc3D");
}

cudaError_t cudaFree(void *p) {
  finishAll();
  return release(p, false);
}
cudaError_t cudaFreeHost(void *p) {
  finishAll();
  return release(p, true);
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
  if (!p || !validStream(stream))
    return result(cudaErrorInvalidValue);
  return enqueue(stream, [=] { return release(p, false); });
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags) {
  if (!p || !bytes)
    return result(cudaErrorInvalidValue);
  if (Memory::get().find(reinterpret_cast<uint64_t>(p)))
    return result(cudaErrorHostMemoryAlreadyRegistered);
  noteMayBeLate();
  Memory::get().addRegistered(p, bytes, flags);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *p) {
  Allocation *a = Memory::get().find(reinterpret_cast<uint64_t>(p));
  if (!a || a->kind != MemoryKind::Registered || a->address != reinterpret_cast<uint64_t>(p))
    return result(cudaErrorHostMemoryNotRegistered);
  finishAll();
  logLastContent(*a);
  Memory::get().release(a->address);
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
  return hostMemory(host) ? give(device, host) : result(cudaErrorInvalidValue);
}
cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
  Allocation *a = hostMemory(host);
  return a ? give(flags, a->flags) : result(cudaErrorInvalidValue);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *into, const void *p) {
  if (!into)
    return result(cudaErrorInvalidValue);
  *into = {};
  into->type = cudaMemoryTypeUnregistered;
  into->device = -2;
  Allocation *a = Memory::get().find(reinterpret_cast<uint64_t>(p));
  if (!a) {
    into->hostPointer = const_cast<void *>(p);
    return cudaSuccess;
  }
  bool host = a->kind == MemoryKind::Host || a->kind == MemoryKind::Registered;
  into->type = host                             ? cudaMemoryTypeHost
               : a->kind == MemoryKind::Managed ? cudaMemoryTypeManaged
                                                : cudaMemoryTypeDevice;
  into->device = 0;
  into->devicePointer = const_cast<void *>(p);
  into->hostPointer = host || a->kind == MemoryKind::Managed ? const_cast<void *>(p) : nullptr;
  return cudaSuccess;
}

/// Of the driver: cuMemGetAddressRange. Zero for success.
static int addressRange(unsigned long long *begin, size_t *bytes, unsigned long long pointer) {
  constexpr int notFound = 500; // CUDA_ERROR_NOT_FOUND
  const Allocation *a = Memory::get().find(pointer);
  if (!a)
    return notFound;
  if (begin)
    *begin = a->address;
  if (bytes)
    *bytes = a->bytes;
  return 0;
}

/// The driver's functions that emitted programs call.
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long,
                                    cudaDriverEntryPointQueryResult *status) {
  if (!symbol || !function)
    return result(cudaErrorInvalidValue);
  const bool isKnown = strcmp(symbol, "cuMemGetAddressRange") == 0;
  *function = isKnown ? reinterpret_cast<void *>(&addressRange) : nullptr;
  if (status)
    *status = isKnown ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *status) {
  return cudaGetDriverEntryPoint(symbol, function, flags, status);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  if (!free || !total)
    return result(cudaErrorInvalidValue);
  *total = Memory::get().totalBytes();
  *free = *total - Memory::get().liveBytes();
  return cudaSuccess;
}

// Hints: there is only one memory.
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void *p, size_t, cudaMemLocation, unsigned, cudaStream_t stream) {
#else
cudaError_t cudaMemPrefetchAsync(const void *p, size_t, int, cudaStream_t stream) {
#endif
  Allocation *a = Memory::get().find(reinterpret_cast<uint64_t>(p));
  return a && a->kind == MemoryKind::Managed && validStream(stream) ? cudaSuccess : result(cudaErrorInvalidValue);
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemAdvise(const void *p, size_t, cudaMemoryAdvise, cudaMemLocation) {
#else
cudaError_t cudaMemAdvise(const void *p, size_t, cudaMemoryAdvise, int) {
#endif
  return Memory::get().find(reinterpret_cast<uint64_t>(p)) ? cudaSuccess : result(cudaErrorInvalidValue);
}

// Pools: one, without limits of its own.
static char defaultPool;
static cudaMemPool_t poolHandle() { return reinterpret_cast<cudaMemPool_t>(&defaultPool); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  return validDevice(device) ? give(pool, poolHandle()) : result(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t) {
  return validDevice(device) ? cudaSuccess : result(cudaErrorInvalidDevice);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *) { return give(pool, poolHandle()); }
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *value) {
  return value ? cudaSuccess : result(cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void *value) {
  if (!value)
    return result(cudaErrorInvalidValue);
  bool wide = attribute >= cudaMemPoolAttrReleaseThreshold;
  bool used = attribute == cudaMemPoolAttrReservedMemCurrent || attribute == cudaMemPoolAttrUsedMemCurrent;
  uint64_t v = used ? Memory::get().liveBytes() : 0;
  memcpy(value, &v, wide ? 8 : 4);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc *, size_t) { return cudaSuccess; }

cudaError_t cudaGetSymbolAddress(void **p, const void *symbol) {
  Allocation *a = Modules::get().variable(symbol);
  return a || !p ? give(p, a ? reinterpret_cast<void *>(a->address) : nullptr) : result(cudaErrorInvalidSymbol);
}
cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
  Allocation *a = Modules::get().variable(symbol);
  return a || !bytes ? give(bytes, a ? size_t(a->bytes) : 0) : result(cudaErrorInvalidSymbol);
}

#define PER_THREAD_MEMORY(function, suffix) OPTIML_PER_THREAD(function, suffix);
#include "PerThread.def"
}
