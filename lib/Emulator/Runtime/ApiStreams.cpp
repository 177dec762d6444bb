//===- ApiStreams.cpp - streams, events and host callbacks ----------------===//
#include "Api.h"
#include <ctime>
#include <mutex>
#include <set>

struct CUstream_st {
  unsigned flags;
  int priority;
  unsigned long long id;
};

struct CUevent_st {
  unsigned flags;
  bool recorded;
  timespec time;
};

using namespace optiml::emu;

namespace {
struct Handles {
  std::mutex mutex;
  std::set<CUstream_st *> streams;
  std::set<CUevent_st *> events;
  unsigned long long nextId = 3;
};
} // namespace

static Handles &handles() {
  static auto *h = new Handles;
  return *h;
}

static bool builtinStream(cudaStream_t s) { return !s || s == cudaStreamLegacy || s == cudaStreamPerThread; }

bool optiml::emu::validStream(cudaStream_t s) {
  if (builtinStream(s))
    return true;
  std::lock_guard lock(handles().mutex);
  return handles().streams.count(s) != 0;
}

static bool validEvent(cudaEvent_t e) {
  std::lock_guard lock(handles().mutex);
  return handles().events.count(e) != 0;
}

static cudaError_t onStream(cudaStream_t s) {
  return validStream(s) ? cudaSuccess : result(cudaErrorInvalidResourceHandle);
}

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *into, unsigned flags, int priority) {
  if (!into || (flags & ~unsigned(cudaStreamNonBlocking)))
    return result(cudaErrorInvalidValue);
  std::lock_guard lock(handles().mutex);
  *into = new CUstream_st{flags, priority, handles().nextId++};
  handles().streams.insert(*into);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *into) { return cudaStreamCreateWithPriority(into, 0, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *into, unsigned flags) {
  return cudaStreamCreateWithPriority(into, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  std::lock_guard lock(handles().mutex);
  if (!handles().streams.erase(s))
    return result(cudaErrorInvalidResourceHandle);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return onStream(s); }
OPTIML_PER_THREAD(cudaStreamSynchronize, _ptsz);
cudaError_t cudaStreamQuery(cudaStream_t s) { return onStream(s); }
OPTIML_PER_THREAD(cudaStreamQuery, _ptsz);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  return validEvent(e) ? onStream(s) : result(cudaErrorInvalidResourceHandle);
}
OPTIML_PER_THREAD(cudaStreamWaitEvent, _ptsz);
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) {
  if (!flags || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  *flags = builtinStream(s) ? 0 : s->flags;
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaStreamGetFlags, _ptsz);
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) {
  if (!priority || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  *priority = builtinStream(s) ? 0 : s->priority;
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaStreamGetPriority, _ptsz);
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id) {
  if (!id || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  *id = builtinStream(s) ? 1 : s->id;
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaStreamGetId, _ptsz);
#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device) {
  if (!device || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  *device = 0;
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaStreamGetDevice, _ptsz);
#endif
cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void *, size_t, unsigned) { return onStream(s); }
OPTIML_PER_THREAD(cudaStreamAttachMemAsync, _ptsz);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status) {
  if (!status)
    return result(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  return onStream(s);
}
OPTIML_PER_THREAD(cudaStreamIsCapturing, _ptsz);
cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID, const cudaStreamAttrValue *) {
  return onStream(s);
}
OPTIML_PER_THREAD(cudaStreamSetAttribute, _ptsz);
cudaError_t cudaCtxResetPersistingL2Cache(void) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *data) {
  if (!f)
    return result(cudaErrorInvalidValue);
  if (!validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  f(data);
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaLaunchHostFunc, _ptsz);
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *data, unsigned) {
  if (!f)
    return result(cudaErrorInvalidValue);
  if (!validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  f(s, cudaSuccess, data);
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaStreamAddCallback, _ptsz);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *into, unsigned flags) {
  if (!into)
    return result(cudaErrorInvalidValue);
  std::lock_guard lock(handles().mutex);
  *into = new CUevent_st{flags, false, {}};
  handles().events.insert(*into);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *into) { return cudaEventCreateWithFlags(into, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  std::lock_guard lock(handles().mutex);
  if (!handles().events.erase(e))
    return result(cudaErrorInvalidResourceHandle);
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  if (!validEvent(e) || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  e->recorded = true;
  clock_gettime(CLOCK_MONOTONIC, &e->time);
  return cudaSuccess;
}
OPTIML_PER_THREAD(cudaEventRecord, _ptsz);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) { return cudaEventRecord(e, s); }
OPTIML_PER_THREAD(cudaEventRecordWithFlags, _ptsz);
cudaError_t cudaEventQuery(cudaEvent_t e) {
  return validEvent(e) ? cudaSuccess : result(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return validEvent(e) ? cudaSuccess : result(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
  if (!ms)
    return result(cudaErrorInvalidValue);
  if (!validEvent(a) || !validEvent(b) || !a->recorded || !b->recorded ||
      ((a->flags | b->flags) & cudaEventDisableTiming))
    return result(cudaErrorInvalidResourceHandle);
  *ms = float(double(b->time.tv_sec - a->time.tv_sec) * 1e3 + double(b->time.tv_nsec - a->time.tv_nsec) * 1e-6);
  return cudaSuccess;
}
#if CUDART_VERSION < 13000
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t a, cudaEvent_t b) { return cudaEventElapsedTime(ms, a, b); }
#endif
}
