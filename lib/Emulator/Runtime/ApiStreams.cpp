//===- ApiStreams.cpp - streams, events and host callbacks ----------------===//
#include "Api.h"
#include "Fault.h"
#include "Queue.h"
#include <ctime>
#include <mutex>
#include <set>
#include <type_traits>

using namespace optiml::emu;

struct CUstream_st {
  unsigned flags;
  int priority;
  unsigned long long id;
};

struct CUevent_st {
  unsigned flags;
  bool recorded;
  timespec time;
  WorkHandle work; ///< that it stands for
};

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

bool optiml::emu::isNonBlocking(cudaStream_t s) { return !builtinStream(s) && (s->flags & cudaStreamNonBlocking); }

static bool validEvent(cudaEvent_t e) {
  std::lock_guard lock(handles().mutex);
  return handles().events.count(e) != 0;
}

static cudaError_t onStream(cudaStream_t s) {
  return validStream(s) ? cudaSuccess : result(cudaErrorInvalidResourceHandle);
}

static cudaError_t onEvent(cudaEvent_t e) {
  return validEvent(e) ? cudaSuccess : result(cudaErrorInvalidResourceHandle);
}

template <typename T>
static cudaError_t giveOfStream(cudaStream_t s, T *into, T CUstream_st::*member, std::type_identity_t<T> ofBuiltin) {
  if (!into || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  *into = builtinStream(s) ? ofBuiltin : s->*member;
  return cudaSuccess;
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
  forgetStream(s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (!validStream(s))
    return onStream(s);
  finishStream(s);
  return cudaSuccess;
}
// A program that asks again and again must get on.
cudaError_t cudaStreamQuery(cudaStream_t s) { return cudaStreamSynchronize(s); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (!validEvent(e) || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  waitFor(s, e->work);
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) {
  return giveOfStream(s, flags, &CUstream_st::flags, 0);
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) {
  return giveOfStream(s, priority, &CUstream_st::priority, 0);
}
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id) { return giveOfStream(s, id, &CUstream_st::id, 1); }
#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device) {
  if (!device || !validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  *device = 0;
  return cudaSuccess;
}
#endif
cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void *, size_t, unsigned) { return onStream(s); }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status) {
  if (!status)
    return result(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  return onStream(s);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID attribute, const cudaStreamAttrValue *) {
  if (attribute == cudaLaunchAttributeAccessPolicyWindow)
    noteDeviceState("an access policy window of a stream");
  return onStream(s);
}
cudaError_t cudaCtxResetPersistingL2Cache(void) {
  noteDeviceState("cudaCtxResetPersistingL2Cache");
  return cudaSuccess;
}
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
  return enqueue(s, [=] {
    f(data);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *data, unsigned) {
  if (!f)
    return result(cudaErrorInvalidValue);
  if (!validStream(s))
    return result(cudaErrorInvalidResourceHandle);
  return enqueue(s, [=] {
    f(s, cudaSuccess, data);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *into, unsigned flags) {
  if (!into)
    return result(cudaErrorInvalidValue);
  std::lock_guard lock(handles().mutex);
  *into = new CUevent_st{flags, false, {}, nullptr};
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
  e->work = markOf(s);
  clock_gettime(CLOCK_MONOTONIC, &e->time);
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) { return cudaEventRecord(e, s); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (!validEvent(e))
    return onEvent(e);
  finish(e->work);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) { return cudaEventSynchronize(e); }
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

#define PER_THREAD_STREAMS(function, suffix) OPTIML_PER_THREAD(function, suffix);
#include "PerThread.def"
}
