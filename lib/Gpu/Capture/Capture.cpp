//===- Capture.cpp - the callbacks of a captured program ------------------===//
#include "Capture.h"
#include "Launches.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace optiml;
using namespace optiml::gpu;

namespace {

Launches *launches = nullptr; ///< used until the process ends
pid_t process = 0;
/// The call of this thread that launches the kernel being recorded; 0: none.
thread_local uint32_t recordedCall = 0;

const CUpti_driver_api_trace_cbid observed[] = {
#define OBSERVED(name) CUPTI_DRIVER_TRACE_CBID_##name,
#include "ObservedCalls.def"
};
const CUpti_CallbackIdResource observedResources[] = {CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                                      CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
                                                      CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING};

/// Parameters of cuLaunchKernel; cuLaunchCooperativeKernel has the same but no `extra`.
template <typename Params> LaunchCall plainCall(const Params &p) {
  LaunchCall c;
  c.function = p.f;
  c.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  c.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  c.sharedBytes = p.sharedMemBytes;
  c.stream = p.hStream;
  c.parameters = p.kernelParams;
  return c;
}

LaunchCall extendedCall(const cuLaunchKernelEx_params &p) {
  LaunchCall c = plainCall([&] {
    const CUlaunchConfig &g = *p.config;
    return cuLaunchCooperativeKernel_params{p.f,         g.gridDimX,  g.gridDimY,       g.gridDimZ, g.blockDimX,
                                            g.blockDimY, g.blockDimZ, g.sharedMemBytes, g.hStream,  p.kernelParams};
  }());
  c.extra = p.extra;
  for (unsigned i = 0; p.config->attrs && i < p.config->numAttrs; ++i) {
    const CUlaunchAttribute &a = p.config->attrs[i];
    if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      c.clusters = a.value.clusterDim.x * a.value.clusterDim.y * a.value.clusterDim.z > 1;
  }
  return c;
}

/// Stream 0 of calls whose name ends in _ptsz is the thread's own.
CUstream streamOf(CUstream stream, bool perThread) { return stream || !perThread ? stream : CU_STREAM_PER_THREAD; }

void launchCall(const CUpti_CallbackData &d, LaunchCall call, bool perThread) {
  launches->seen(d.context);
  call.stream = streamOf(call.stream, perThread);
  if (call.function && launches->before(call, d.symbolName))
    isRecorded(recordedCall = d.correlationId ? d.correlationId : 1);
}

template <typename Params> void allocated(const CUpti_CallbackData &d) {
  const Params &p = paramsOf<Params>(d);
  if (p.dptr)
    launches->allocations.add(*p.dptr, p.bytesize, d.context);
}
template <typename Params> void hostAllocated(const CUpti_CallbackData &d) {
  const Params &p = paramsOf<Params>(d);
  if (p.pp)
    launches->allocations.add(reinterpret_cast<uint64_t>(*p.pp), p.bytesize, d.context);
}

/// Memory counts as freed before the driver frees it: afterwards another thread may have got it again.
void onEnter(CUpti_CallbackId id, const CUpti_CallbackData &d) {
  Allocations &memory = launches->allocations;
  switch (id) {
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
    LaunchCall call = plainCall(paramsOf<cuLaunchKernel_params>(d));
    call.extra = paramsOf<cuLaunchKernel_params>(d).extra;
    return launchCall(d, call, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
  }
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
    if (paramsOf<cuLaunchKernelEx_params>(d).config)
      launchCall(d, extendedCall(paramsOf<cuLaunchKernelEx_params>(d)),
                 id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
    return;
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
    return launchCall(d, plainCall(paramsOf<cuLaunchCooperativeKernel_params>(d)),
                      id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
  case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
  case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz: return launches->graphLaunched();
  // All forms have the stream as their first parameter.
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph:
    return launches->streamCaptureBegins(paramsOf<cuStreamBeginCapture_params>(d).hStream);
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz:
    return launches->streamCaptureBegins(streamOf(paramsOf<cuStreamBeginCapture_params>(d).hStream, true));
  case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2: return memory.remove(paramsOf<cuMemFree_v2_params>(d).dptr);
  case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync:
  case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz: return memory.remove(paramsOf<cuMemFreeAsync_params>(d).dptr);
  case CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost:
    return memory.remove(reinterpret_cast<uint64_t>(paramsOf<cuMemFreeHost_params>(d).p));
  case CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister:
    return memory.remove(reinterpret_cast<uint64_t>(paramsOf<cuMemHostUnregister_params>(d).p));
  case CUPTI_DRIVER_TRACE_CBID_cuMemUnmap:
    return memory.unmap(paramsOf<cuMemUnmap_params>(d).ptr, paramsOf<cuMemUnmap_params>(d).size);
  default: return;
  }
}

void onExit(CUpti_CallbackId id, const CUpti_CallbackData &d) {
  const CUresult *returned = static_cast<const CUresult *>(d.functionReturnValue);
  CUresult result = returned ? *returned : CUDA_ERROR_UNKNOWN;
  bool good = result == CUDA_SUCCESS;
  switch (id) {
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
  case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
    if (recordedCall && recordedCall == (d.correlationId ? d.correlationId : 1)) {
      recordedCall = 0;
      launches->after(result);
    }
    return;
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph:
    if (!good)
      launches->streamCaptureEnds(paramsOf<cuStreamBeginCapture_params>(d).hStream);
    return;
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz:
    if (!good)
      launches->streamCaptureEnds(streamOf(paramsOf<cuStreamBeginCapture_params>(d).hStream, true));
    return;
  case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture:
  case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz:
    // Whatever it returns, the capture is over, unless another thread has to end it.
    if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
      launches->streamCaptureEnds(streamOf(paramsOf<cuStreamEndCapture_params>(d).hStream,
                                           id == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz));
    return;
  case CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2:
    return launches->streamCaptureEnds(paramsOf<cuStreamDestroy_v2_params>(d).hStream);
  default: break;
  }
  if (!good)
    return;
  switch (id) {
  case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2: return allocated<cuMemAlloc_v2_params>(d);
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged: return allocated<cuMemAllocManaged_params>(d);
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync:
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz: return allocated<cuMemAllocAsync_params>(d);
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync:
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz: return allocated<cuMemAllocFromPoolAsync_params>(d);
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2: return hostAllocated<cuMemAllocHost_v2_params>(d);
  case CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc:
  case CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc_v2: return hostAllocated<cuMemHostAlloc_params>(d);
  case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2: {
    const auto &p = paramsOf<cuMemAllocPitch_v2_params>(d);
    if (p.dptr && p.pPitch)
      launches->allocations.add(*p.dptr, *p.pPitch * p.Height, d.context);
    return;
  }
  case CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister:
  case CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2: {
    const auto &p = paramsOf<cuMemHostRegister_params>(d);
    return launches->allocations.add(reinterpret_cast<uint64_t>(p.p), p.bytesize, d.context);
  }
  case CUPTI_DRIVER_TRACE_CBID_cuMemMap:
    return launches->allocations.map(paramsOf<cuMemMap_params>(d).ptr, paramsOf<cuMemMap_params>(d).size);
  default: return;
  }
}

/// Modules also load while we ask the driver something, so these are seen even then.
void onResource(CUpti_CallbackId id, const CUpti_ResourceData &d) {
  const auto *module = static_cast<const CUpti_ModuleResourceData *>(d.resourceDescriptor);
  switch (id) {
  case CUPTI_CBID_RESOURCE_MODULE_LOADED:
    if (module)
      launches->modules.loaded(module->moduleId, module->pCubin, module->cubinSize);
    return;
  case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
    if (module)
      launches->modules.unloaded(module->moduleId);
    return;
  case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
    beforeContextEnds();
    launches->allocations.removeOwned(d.context);
    launches->modules.invalidate();
    return;
  default: return;
  }
}

void CUPTIAPI callback(void *, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  if (!data || getpid() != process)
    return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE)
    return onResource(id, *static_cast<const CUpti_ResourceData *>(data));
  if (isCopy(domain, id))
    return copyEnded(id, *static_cast<const CUpti_CallbackData *>(data));
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || Quiet::here())
    return;
  Quiet quiet;
  const auto &d = *static_cast<const CUpti_CallbackData *>(data);
  if (!d.functionParams)
    return;
  if (d.callbackSite == CUPTI_API_ENTER)
    onEnter(id, d);
  else if (d.callbackSite == CUPTI_API_EXIT)
    onExit(id, d);
}

void finish() {
  Quiet quiet;
  if (getpid() == process) // a child that was forked writes nothing
    launches->finish();
}

} // namespace

bool optiml::gpu::startCapture(const Driver &driver, const Cupti &cupti, const char *directory) {
  CaptureLimits limits;
  limits.maxBytes = uint64_t(8) << 30;
  limits.maxLaunches = 64;
  limits.timeShare = 0.25;
  process = getpid();
  launches = new Launches(driver);
  if (!launches->open(pathOfProcess(directory), environmentLimits(limits), getenv(envCaptureKernels)))
    return false;
  CUpti_SubscriberHandle subscriber = nullptr;
  if (!succeeded(cupti, cupti.cuptiSubscribe(&subscriber, callback, nullptr), "CUPTI does not start"))
    return false;
  bool good = true;
  for (CUpti_driver_api_trace_cbid id : observed)
    good &= succeeded(cupti, cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id),
                      "CUPTI does not tell of a driver call");
  for (CUpti_CallbackIdResource id : observedResources)
    good &= succeeded(cupti, cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id),
                      "CUPTI does not tell of modules");
  keepCopies(driver, cupti, subscriber);
  atexit(finish);
  if (const char *when = getenv(envPauseAfter); good && when && *when)
    pauseAfter(when, driver, *launches);
  return good;
}
