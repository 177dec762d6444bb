//===- Copies.cpp - what a program copies to the host ---------------------===//
//
// Two programs that should compute the same can be told apart by what their hosts see, where they print little. Only
// copies that have ended when the call returns are kept: of others, the bytes are there later.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include "optiml/Workload/Recorder.h"
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <mutex>
#include <utility>

using namespace optiml;
using namespace optiml::gpu;

// Of one program: more is not written.
static constexpr uint64_t mostBytes = uint64_t(1) << 30;

static FILE *file = nullptr; ///< open until the process ends
static std::mutex mutex;

static constexpr CUpti_runtime_api_trace_cbid copies[] = {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
                                                          CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000};

bool optiml::gpu::isCopy(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return domain == CUPTI_CB_DOMAIN_RUNTIME_API && (id == copies[0] || id == copies[1]);
}

void optiml::gpu::copyEnded(const CUpti_CallbackData &data) {
  static uint64_t written = 0;
  const auto &call = *static_cast<const cudaMemcpy_v3020_params *>(data.functionParams);
  if (data.callbackSite != CUPTI_API_EXIT || call.kind != cudaMemcpyDeviceToHost ||
      *static_cast<const cudaError_t *>(data.functionReturnValue) != cudaSuccess)
    return;
  std::lock_guard lock(mutex);
  const uint64_t bytes = call.count;
  if (!file)
    return;
  fwrite(&bytes, sizeof bytes, 1, file);
  if (written + bytes > mostBytes)
    fclose(std::exchange(file, nullptr)); // a reader misses these bytes
  if (!file)
    return;
  fwrite(call.dst, 1, bytes, file);
  fflush(file); // the process may end in any way
  written += bytes;
}

void optiml::gpu::keepCopies(const Cupti &cupti, CUpti_SubscriberHandle subscriber) {
  const char *pattern = getenv(envCopies);
  if (!pattern || !*pattern)
    return;
  file = fopen(pathOfProcess(pattern).c_str(), "wb");
  for (CUpti_runtime_api_trace_cbid id : copies)
    succeeded(cupti, cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id),
              "CUPTI does not tell of copies");
}
