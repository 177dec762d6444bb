//===- Copies.cpp - what a program copies to the host ---------------------===//
//
// Two programs that should compute the same can be told apart by what their hosts see, where they print little. Kept
// are copies that have ended when the call returns, those of streams when the host has waited for them, and unified
// memory as it is when the host has waited. Where a program may see anything else, the file ends there in the middle of
// a copy, so that nothing is taken for the whole.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include "optiml/Workload/Recorder.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <sys/uio.h>
#include <unistd.h>
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
/// A copy for whose end the host has not waited yet.
struct PendingCopy {
  uint64_t from;
  void *to;
  uint64_t bytes;
  cudaStream_t stream;
  uint64_t number; ///< counted from the first
};
static std::vector<PendingCopy> pending;
static uint64_t copiesBegun = 0;
/// By event: the stream in which it was recorded last, and how many copies had begun then.
static std::map<cudaEvent_t, std::pair<cudaStream_t, uint64_t>> events;
static std::mutex mutex; ///< of all these

static constexpr CUpti_runtime_api_trace_cbid observed[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_ptds_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3D_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromArray_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbol_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbol_ptds_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbolAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbolAsync_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaHostGetDevicePointer_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000,
    CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020};

bool optiml::gpu::isCopy(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
         std::find(std::begin(observed), std::end(observed), id) != std::end(observed);
}

/// With the mutex: where it lay on the device (0: not known), its bytes, and these. A reader misses what is not
/// written.
static void write(uint64_t from, const void *content, uint64_t bytes) {
  static uint64_t written = 0;
  if (!file)
    return;
  fwrite(&from, sizeof from, 1, file);
  fwrite(&bytes, sizeof bytes, 1, file);
  if (!content || written + bytes > mostBytes)
    fclose(std::exchange(file, nullptr));
  if (!file)
    return;
  fwrite(content, 1, bytes, file);
  fflush(file); // the process may end in any way
  written += bytes;
}

/// With the mutex: what follows is not known.
static void endUnfinished() { write(0, nullptr, 1); }

/// What the host may read now. It is copied where it lies, so that no page moves.
static void writeManaged() {
  Quiet quiet;
  std::string content;
  for (const auto &[address, bytes] : managed) {
    if (!file)
      return;
    bool isCopied = bytes <= mostBytes;
    if (isCopied) {
      content.resize(size_t(bytes));
      isCopied = driver->cuMemcpyDtoH(content.data(), address, bytes) == CUDA_SUCCESS;
    }
    write(address, isCopied ? content.data() : nullptr, bytes);
  }
}

/// With the mutex: the host has waited for those of the stream (of all, without one) of which so many had begun. What
/// they have written is read with care: the program may have given the memory back.
static void writeEnded(std::optional<cudaStream_t> stream, uint64_t begun) {
  std::erase_if(pending, [&](const PendingCopy &copy) {
    if ((stream && copy.stream != *stream) || copy.number >= begun)
      return false;
    std::string content(size_t(std::min(copy.bytes, mostBytes)), 0);
    const iovec here{content.data(), content.size()}, there{copy.to, content.size()};
    const bool isRead =
        copy.bytes <= mostBytes && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == ssize_t(content.size());
    write(copy.from, isRead ? content.data() : nullptr, copy.bytes);
    return true;
  });
}

/// A copy in a stream.
static void begun(const cudaMemcpyAsync_v3020_params &call) {
  if (call.kind == cudaMemcpyDefault) // perhaps to the host
    return endUnfinished();
  if (call.kind == cudaMemcpyDeviceToHost)
    pending.push_back({reinterpret_cast<uint64_t>(call.src), call.dst, call.count, call.stream, copiesBegun++});
}

/// A copy whose bytes are there when it returns, if they come from the device.
static void copied(const void *to, const void *from, uint64_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost)
    write(reinterpret_cast<uint64_t>(from), to, bytes);
  else if (kind == cudaMemcpyDefault) // perhaps to the host
    endUnfinished();
}

/// A copy whose bytes are there later, or not in a row.
static void leftOut(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDefault)
    endUnfinished();
}

/// With the mutex: after a call that succeeded.
static void keep(CUpti_CallbackId id, const CUpti_CallbackData &data) {
  switch (id) {
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000: {
    const auto &call = paramsOf<cudaMemcpy_v3020_params>(data);
    writeEnded(cudaStream_t(nullptr), copiesBegun); // it has waited
    copied(call.dst, call.src, call.count, call.kind);
    return writeManaged();
  }
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbol_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbol_ptds_v7000: {
    const auto &call = paramsOf<cudaMemcpyFromSymbol_v3020_params>(data);
    copied(call.dst, /*from=*/nullptr, call.count, call.kind);
    return writeManaged();
  }
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000: return begun(paramsOf<cudaMemcpyAsync_v3020_params>(data));
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_ptds_v7000: return leftOut(paramsOf<cudaMemcpy2D_v3020_params>(data).kind);
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_ptsz_v7000:
    return leftOut(paramsOf<cudaMemcpy2DAsync_v3020_params>(data).kind);
  case CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000: {
    const auto &call = paramsOf<cudaMallocManaged_v6000_params>(data);
    managed.emplace_back(reinterpret_cast<uint64_t>(*call.devPtr), call.size);
    return;
  }
  case CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_ptsz_v7000: {
    const auto &call = paramsOf<cudaEventRecord_v3020_params>(data);
    events[call.event] = {call.stream, copiesBegun};
    return;
  }
  case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020:
    writeEnded(std::nullopt, copiesBegun);
    return writeManaged();
  case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020:
  case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000:
    writeEnded(paramsOf<cudaStreamSynchronize_v3020_params>(data).stream, copiesBegun);
    return writeManaged();
  case CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020:
    if (auto it = events.find(paramsOf<cudaEventSynchronize_v3020_params>(data).event); it != events.end())
      writeEnded(it->second.first, it->second.second);
    return writeManaged();
  case CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020: // kernels may write what the host reads
    if (paramsOf<cudaHostAlloc_v3020_params>(data).flags & cudaHostAllocMapped)
      endUnfinished();
    return;
  default: return endUnfinished();
  }
}

void optiml::gpu::copyEnded(CUpti_CallbackId id, const CUpti_CallbackData &data) {
  if (Quiet::here())
    return;
  std::lock_guard lock(mutex);
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020) {
    const uint64_t address = reinterpret_cast<uint64_t>(paramsOf<cudaFree_v3020_params>(data).devPtr);
    if (data.callbackSite == CUPTI_API_ENTER)
      std::erase_if(managed, [&](const auto &allocation) { return allocation.first == address; });
    return;
  }
  if (data.callbackSite == CUPTI_API_EXIT && *static_cast<const cudaError_t *>(data.functionReturnValue) == cudaSuccess)
    keep(id, data);
}

void optiml::gpu::keepCopies(const Driver &ofProcess, const Cupti &cupti, CUpti_SubscriberHandle subscriber) {
  const char *pattern = getenv(envCopies);
  if (!pattern || !*pattern)
    return;
  driver = &ofProcess;
  atexit([] {
    std::lock_guard lock(mutex);
    if (!pending.empty()) // the host may have seen them without waiting in a way that is known here
      endUnfinished();
  });
  file = fopen(pathOfProcess(pattern).c_str(), "wb");
  for (CUpti_runtime_api_trace_cbid id : observed)
    succeeded(cupti, cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id),
              "CUPTI does not tell of copies");
}
