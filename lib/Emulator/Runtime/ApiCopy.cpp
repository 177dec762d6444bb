//===- ApiCopy.cpp - copying and setting memory ---------------------------===//
#include "Api.h"
#include "AroundLaunch.h"
#include "Memory.h"
#include "Modules.h"
#include "Queue.h"
#include "Settings.h"
#include "Twins.h"
#include <atomic>
#include <cstring>
#include <tuple>

using namespace optiml::emu;

/// Whether the GPU's copy engine would accept the range: a pointer into known memory must stay inside its allocation,
/// and one that must be the device's must be known.
static bool validRange(const void *p, size_t bytes, bool mustBeDevice) {
  uint64_t address = reinterpret_cast<uint64_t>(p);
  if (Allocation *a = Memory::get().find(address))
    return a->contains(address, bytes);
  return p && !mustBeDevice && !Memory::get().inArena(address);
}

static cudaError_t checkCopy(const void *dst, size_t dstBytes, const void *src, size_t srcBytes, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!validRange(dst, dstBytes, toDevice) || !validRange(src, srcBytes, fromDevice))
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

/// Alters the element in `width` bytes from the device that OPTIML_EMU_ALTER_COPY names: eight bytes, so that no type
/// of number keeps its value.
static void alterCopied(char *row, size_t width) {
  static std::atomic<uint64_t> before{0};
  uint64_t first = before.fetch_add(width), wanted = settings().alterCopy;
  if (wanted < first || wanted - first >= width)
    return;
  size_t begin = (wanted - first) / 8 * 8;
  for (size_t i = begin; i < width && i < begin + 8; ++i)
    row[i] = settings().alterToNaN ? char(0xff) : char(row[i] ^ 0x5a);
}

/// Notes what a copy means to fresh inputs and to the copy log.
static void copied(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height) {
  Allocation *to = Memory::get().find(reinterpret_cast<uint64_t>(dst));
  Allocation *from = Memory::get().find(reinterpret_cast<uint64_t>(src));
  auto onDevice = [](Allocation *a) {
    return a && (a->kind == MemoryKind::Device || a->kind == MemoryKind::Managed || a->kind == MemoryKind::Symbol);
  };
  if (onDevice(to) && onDevice(from)) {
    if (from->lastKernel) {
      to->lastKernel = from->lastKernel;
      to->element = from->element;
    }
    for (size_t y = 0; y < height; ++y)
      copyTwins(*to, reinterpret_cast<uint64_t>(dst) + y * dpitch - to->address, *from,
                reinterpret_cast<uint64_t>(src) + y * spitch - from->address, width);
  }
  for (auto [side, address, pitch] : {std::tuple(to, static_cast<const void *>(dst), dpitch), {from, src, spitch}})
    if (side && (side->kind == MemoryKind::Host || (onDevice(to) && onDevice(from))))
      noteTouched(address, (height - 1) * pitch + width);
  if (onDevice(to))
    to->fromHost = !onDevice(from) || from->fromHost;
  else if (onDevice(from)) {
    logCopy(*from, src, spitch, width, height);
    for (size_t y = 0; y < height; ++y)
      alterCopied(static_cast<char *>(dst) + y * dpitch, width);
  }
}

/// What came from the host and is copied on may be a kernel's input under another name.
static void beforeCopy(const void *src) {
  if (Allocation *from = Memory::get().find(reinterpret_cast<uint64_t>(src)); from && from->kind == MemoryKind::Device)
    freshBeforeCopy(*from);
}

static cudaError_t copy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind) {
  if (!bytes)
    return cudaSuccess;
  if (cudaError_t e = checkCopy(dst, bytes, src, bytes, kind))
    return result(e);
  beforeCopy(src);
  memmove(dst, src, bytes);
  copied(dst, bytes, src, bytes, bytes, 1);
  return cudaSuccess;
}

static size_t extent2D(size_t pitch, size_t width, size_t height) { return (height - 1) * pitch + width; }

static cudaError_t copy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                          cudaMemcpyKind kind) {
  if (!width || !height)
    return cudaSuccess;
  if (width > dpitch || width > spitch)
    return result(cudaErrorInvalidPitchValue);
  if (cudaError_t e = checkCopy(dst, extent2D(dpitch, width, height), src, extent2D(spitch, width, height), kind))
    return result(e);
  beforeCopy(src);
  for (size_t y = 0; y < height; ++y)
    memmove(static_cast<char *>(dst) + y * dpitch, static_cast<const char *>(src) + y * spitch, width);
  copied(dst, dpitch, src, spitch, width, height);
  return cudaSuccess;
}

static cudaError_t copy3D(const cudaMemcpy3DParms *p) {
  if (!p)
    return result(cudaErrorInvalidValue);
  if (p->srcArray || p->dstArray)
    return unsupported("cudaMemcpy3D with a CUDA array");
  cudaExtent e = p->extent;
  if (!e.width || !e.height || !e.depth)
    return cudaSuccess;
  const cudaPitchedPtr &s = p->srcPtr, &d = p->dstPtr;
  if (e.width + p->srcPos.x > s.pitch || e.width + p->dstPos.x > d.pitch)
    return result(cudaErrorInvalidPitchValue);
  const char *src = static_cast<const char *>(s.ptr) + p->srcPos.x;
  char *dst = static_cast<char *>(d.ptr) + p->dstPos.x;
  auto offset = [](const cudaPitchedPtr &q, size_t y, size_t z) { return (z * q.ysize + y) * q.pitch; };
  src += offset(s, p->srcPos.y, p->srcPos.z);
  dst += offset(d, p->dstPos.y, p->dstPos.z);
  size_t srcBytes = offset(s, e.height - 1, e.depth - 1) + e.width;
  size_t dstBytes = offset(d, e.height - 1, e.depth - 1) + e.width;
  if (cudaError_t error = checkCopy(dst, dstBytes, src, srcBytes, p->kind))
    return result(error);
  for (size_t z = 0; z < e.depth; ++z) {
    for (size_t y = 0; y < e.height; ++y)
      memmove(dst + offset(d, y, z), src + offset(s, y, z), e.width);
    copied(dst + offset(d, 0, z), d.pitch, src + offset(s, 0, z), s.pitch, e.width, e.height);
  }
  return cudaSuccess;
}

static cudaError_t set2D(void *p, size_t pitch, int value, size_t width, size_t height) {
  if (!width || !height)
    return cudaSuccess;
  if (width > pitch && height > 1)
    return result(cudaErrorInvalidPitchValue);
  if (!validRange(p, extent2D(pitch, width, height), true))
    return result(cudaErrorInvalidValue);
  for (size_t y = 0; y < height; ++y)
    memset(static_cast<char *>(p) + y * pitch, value, width);
  noteTouched(p, extent2D(pitch, width, height));
  return cudaSuccess;
}

/// Whether a copy may go on after its call: of memory that the GPU reaches by itself.
static bool mayGoOn(const void *p) { return Memory::get().find(reinterpret_cast<uint64_t>(p)) != nullptr; }

/// A copy on a stream.
static cudaError_t copyOn(cudaStream_t stream, const void *dst, const void *src, std::function<cudaError_t()> work) {
  if (!validStream(stream))
    return result(cudaErrorInvalidResourceHandle);
  return mayGoOn(dst) && mayGoOn(src) ? enqueue(stream, std::move(work)) : enqueueAndFinish(stream, std::move(work));
}

/// Setting memory on a stream; the host never waits for it.
static cudaError_t setOn(cudaStream_t stream, std::function<cudaError_t()> work) {
  return validStream(stream) ? enqueue(stream, std::move(work)) : result(cudaErrorInvalidResourceHandle);
}

/// The address of [offset, offset + bytes) in a device variable, or null and an error.
static char *symbolRange(const void *symbol, size_t bytes, size_t offset, cudaError_t &error) {
  Allocation *a = Modules::get().variable(symbol);
  error = !a                                               ? cudaErrorInvalidSymbol
          : offset > a->bytes || bytes > a->bytes - offset ? cudaErrorInvalidValue
                                                           : cudaSuccess;
  return error ? nullptr : reinterpret_cast<char *>(a->address) + offset;
}

extern "C" {

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind) {
  return enqueueAndFinish(nullptr, [=] { return copy(dst, src, bytes, kind); });
}
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copyOn(stream, dst, src, [=] { return copy(dst, src, bytes, kind); });
}
cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t bytes) {
  return cudaMemcpyPeerAsync(dst, dstDevice, src, srcDevice, bytes, nullptr);
}
cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t bytes,
                                cudaStream_t stream) {
  if (!validDevice(dstDevice) || !validDevice(srcDevice))
    return result(cudaErrorInvalidDevice);
  return copyOn(stream, dst, src, [=] { return copy(dst, src, bytes, cudaMemcpyDeviceToDevice); });
}
cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return enqueueAndFinish(nullptr, [=] { return copy2D(dst, dpitch, src, spitch, width, height, kind); });
}
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copyOn(stream, dst, src, [=] { return copy2D(dst, dpitch, src, spitch, width, height, kind); });
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p) {
  return enqueueAndFinish(nullptr, [=] { return copy3D(p); });
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
  if (!p)
    return result(cudaErrorInvalidValue);
  return copyOn(stream, p->dstPtr.ptr, p->srcPtr.ptr, [parms = *p] { return copy3D(&parms); });
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t error;
  char *dst = symbolRange(symbol, bytes, offset, error);
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return result(cudaErrorInvalidMemcpyDirection);
  if (!dst)
    return result(error);
  return copyOn(stream, dst, src, [=] { return copy(dst, src, bytes, kind); });
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  cudaError_t error = cudaMemcpyToSymbolAsync(symbol, src, bytes, offset, kind, nullptr);
  finishStream(nullptr);
  return error;
}
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  cudaError_t error;
  char *src = symbolRange(symbol, bytes, offset, error);
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return result(cudaErrorInvalidMemcpyDirection);
  if (!src)
    return result(error);
  return copyOn(stream, dst, src, [=] { return copy(dst, src, bytes, kind); });
}
cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  cudaError_t error = cudaMemcpyFromSymbolAsync(dst, symbol, bytes, offset, kind, nullptr);
  finishStream(nullptr);
  return error;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream) {
  return setOn(stream, [=] { return set2D(p, bytes, value, bytes, 1); });
}
cudaError_t cudaMemset(void *p, int value, size_t bytes) { return cudaMemsetAsync(p, value, bytes, nullptr); }
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return setOn(stream, [=] { return set2D(p, pitch, value, width, height); });
}
cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(p, pitch, value, width, height, nullptr);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent e, cudaStream_t stream) {
  return setOn(stream, [=] {
    for (size_t z = 0; z < e.depth; ++z)
      if (cudaError_t error =
              set2D(static_cast<char *>(p.ptr) + z * p.pitch * p.ysize, p.pitch, value, e.width, e.height))
        return error;
    return cudaSuccess;
  });
}
cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent e) { return cudaMemset3DAsync(p, value, e, nullptr); }

#define PER_THREAD_COPY(function, suffix) OPTIML_PER_THREAD(function, suffix);
#include "PerThread.def"
}
