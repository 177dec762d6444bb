//===- Copies.cpp - what a program copies to the host ---------------------===//
//
// Two programs that should compute the same can be told apart by what their hosts see, where they print little. Only
// copies that have ended when the call returns are kept: of others, the bytes are there later. Unified memory is kept
// as it is when the host has waited for the device.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include "optiml/Workload/Recorder.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace optiml;
using namespace optiml::gpu;

// Of one program: more is not written.
static constexpr uint64_t mostBytes = uint64_t(1) << 30;

static FILE *file = nullptr; ///< open until the process ends
static const Driver *driver = nullptr;
/// Allocations of unified memory in the order in which they were made, and their bytes.
static std::vector<std::pair<uint64_t, uint64_t>> managed;
static std::mutex mutex; ///< of all these

static constexpr CUpti_runtime_api_trace_cbid observed[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020};

bool optiml::gpu::isCopy(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
         std::find(std::begin(observed), std::end(observed), id) != std::end(observed);
}

/// With the mutex. A reader misses the bytes that are not written.
static void write(const void *content, uint64_t bytes) {
  static uint64_t written = 0;
  if (!file)
    return;
  fwrite(&bytes, sizeof bytes, 1, file);
  if (!content || written + bytes > mostBytes)
    fclose(std::exchange(file, nullptr));
  if (!file)
    return;
  fwrite(content, 1, bytes, file);
  fflush(file); // the process may end in any way
  written += bytes;
}

/// What the host may read now. It is copied where it lies, so that no page moves.
static void writeManaged() {
  Quiet quiet;
  std::string content;
  for (const auto &[address, bytes] : managed) {
    if (!file)
      return;
    content.resize(size_t(bytes));
    const bool isCopied = bytes <= mostBytes && driver->cuMemcpyDtoH(content.data(), address, bytes) == CUDA_SUCCESS;
    write(isCopied ? content.data() : nullptr, bytes);
  }
}

void optiml::gpu::copyEnded(CUpti_CallbackId id, const CUpti_CallbackData &data) {
  if (Quiet::here())
    return;
  std::lock_guard lock(mutex);
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020) {
    const auto &call = *static_cast<const cudaFree_v3020_params *>(data.functionParams);
    if (data.callbackSite == CUPTI_API_ENTER)
      std::erase_if(managed, [&](const auto &a) { return a.first == reinterpret_cast<uint64_t>(call.devPtr); });
    return;
  }
  if (data.callbackSite != CUPTI_API_EXIT || *static_cast<const cudaError_t *>(data.functionReturnValue) != cudaSuccess)
    return;
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020)
    return writeManaged();
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000) {
    const auto &call = *static_cast<const cudaMallocManaged_v6000_params *>(data.functionParams);
    managed.emplace_back(reinterpret_cast<uint64_t>(*call.devPtr), call.size);
    return;
  }
  const auto &call = *static_cast<const cudaMemcpy_v3020_params *>(data.functionParams);
  if (call.kind == cudaMemcpyDeviceToHost)
    write(call.dst, call.count);
}

void optiml::gpu::keepCopies(const Driver &ofProcess, const Cupti &cupti, CUpti_SubscriberHandle subscriber) {
  const char *pattern = getenv(envCopies);
  if (!pattern || !*pattern)
    return;
  driver = &ofProcess;
  file = fopen(pathOfProcess(pattern).c_str(), "wb");
  for (CUpti_runtime_api_trace_cbid id : observed)
    succeeded(cupti, cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id),
              "CUPTI does not tell of copies");
}
