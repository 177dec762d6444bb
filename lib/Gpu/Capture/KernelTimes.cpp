//===- KernelTimes.cpp - how long a program's kernels take ----------------===//
//
// CUPTI's activity records, summed by kernel and written as JSON when the program exits:
//
//     {"kernels": [{"symbol", "name", "launches", "seconds"}, …], "kernelSeconds", "copySeconds", "dropped"}
//
// or when it pauses (Pause.cpp), then with "paused", its process's number.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include "Fields.h"
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>

using namespace optiml;
using namespace optiml::gpu;
using nlohmann::json;

// The records that the CUPTI of these headers writes.
#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using SetRecord = CUpti_ActivityMemset4;

namespace {

struct KernelTime {
  uint64_t launches = 0, nanoseconds = 0;
  uint64_t recorded = 0, recordedNanoseconds = 0; ///< the part of launches that are being recorded
  /// As long as the recorded ones would have taken without that, too.
  double seconds() const {
    const uint64_t others = launches - recorded;
    return 1e-9 * (others ? double(nanoseconds - recordedNanoseconds) * double(launches) / double(others)
                          : double(nanoseconds));
  }
};

struct Times {
  const Driver *driver = nullptr;
  const Cupti *cupti = nullptr;
  std::string file;
  pid_t process = 0;
  std::mutex mutex; ///< of what follows; CUPTI's own thread brings the records
  std::map<std::string, KernelTime> kernels;
  uint64_t copyNanoseconds = 0, dropped = 0;
  std::set<uint32_t> recorded; ///< correlation numbers of launches
};
Times *times = nullptr; ///< used until the process ends

constexpr size_t bufferBytes = size_t(8) << 20, bufferAlignment = 8;

void CUPTIAPI bufferRequested(uint8_t **buffer, size_t *size, size_t *maxNumRecords) {
  *buffer = static_cast<uint8_t *>(aligned_alloc(bufferAlignment, bufferBytes));
  *size = *buffer ? bufferBytes : 0;
  *maxNumRecords = 0; // as many as fit
}

/// A record of what had not finished has no end.
template <typename Record> uint64_t lasted(const CUpti_Activity *record) {
  const Record &r = *reinterpret_cast<const Record *>(record);
  return r.start && r.end > r.start ? r.end - r.start : 0;
}

void count(const CUpti_Activity *record) {
  switch (record->kind) {
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
  case CUPTI_ACTIVITY_KIND_KERNEL: {
    const auto *kernel = reinterpret_cast<const KernelRecord *>(record);
    KernelTime &t = times->kernels[kernel->name ? kernel->name : ""];
    const uint64_t took = lasted<KernelRecord>(record);
    ++t.launches;
    t.nanoseconds += took;
    if (times->recorded.erase(kernel->correlationId)) {
      ++t.recorded;
      t.recordedNanoseconds += took;
    }
    return;
  }
  case CUPTI_ACTIVITY_KIND_MEMCPY: times->copyNanoseconds += lasted<CopyRecord>(record); return;
  case CUPTI_ACTIVITY_KIND_MEMCPY2: times->copyNanoseconds += lasted<PeerCopyRecord>(record); return;
  case CUPTI_ACTIVITY_KIND_MEMSET: times->copyNanoseconds += lasted<SetRecord>(record); return;
  default: return;
  }
}

void CUPTIAPI bufferCompleted(CUcontext context, uint32_t stream, uint8_t *buffer, size_t, size_t validSize) {
  {
    std::lock_guard lock(times->mutex);
    CUpti_Activity *record = nullptr;
    while (buffer && validSize &&
           times->cupti->cuptiActivityGetNextRecord(buffer, validSize, &record) == CUPTI_SUCCESS && record)
      count(record);
    size_t dropped = 0;
    if (times->cupti->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
      times->dropped += dropped;
  }
  free(buffer);
}

bool writeTimes(bool paused, std::string &error) {
  std::lock_guard lock(times->mutex);
  std::vector<std::pair<std::string, KernelTime>> sorted(times->kernels.begin(), times->kernels.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto &a, auto &b) { return a.second.seconds() > b.second.seconds(); });
  json kernels = json::array();
  double total = 0;
  for (auto &[symbol, t] : sorted) {
    total += t.seconds();
    kernels.push_back({{"symbol", symbol},
                       {"name", demangled(symbol)},
                       {"launches", t.launches},
                       {"recorded", t.recorded},
                       {"seconds", t.seconds()}});
  }
  // A program may start others, which inherit the environment: one without kernels leaves their file alone.
  if (kernels.empty() && access(times->file.c_str(), F_OK) == 0)
    return true;
  json all = {{"kernels", kernels},
              {"kernelSeconds", total},
              {"copySeconds", double(times->copyNanoseconds) * 1e-9},
              {"dropped", times->dropped}};
  if (paused)
    all["paused"] = times->process;
  return writeJson(all, times->file, error);
}

/// Lets kernels that still run at the program's end finish, for a while: a program may leave one that never does.
void waitForGpu() {
  using Clock = std::chrono::steady_clock;
  CUcontext context = nullptr;
  if (times->driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
    return;
  for (auto end = Clock::now() + std::chrono::seconds(5); Clock::now() < end;) {
    if (times->driver->cuStreamQuery(CU_STREAM_LEGACY) != CUDA_ERROR_NOT_READY)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void finish() {
  if (getpid() != times->process) // a child that was forked
    return;
  Quiet quiet;
  waitForGpu();
  times->cupti->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::string error;
  if (!writeTimes(/*paused=*/false, error))
    fprintf(stderr, "optiml: error: %s\n", error.c_str());
}

void CUPTIAPI called(void *, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  if (data && isCopy(domain, id))
    copyEnded(id, *static_cast<const CUpti_CallbackData *>(data));
  else if (data && static_cast<const CUpti_CallbackData *>(data)->callbackSite == CUPTI_API_ENTER)
    beforeContextEnds();
}

bool watchContexts(const Cupti &cupti) {
  CUpti_SubscriberHandle subscriber = nullptr;
  if (!succeeded(cupti, cupti.cuptiSubscribe(&subscriber, called, nullptr), "CUPTI does not tell of resets"))
    return false;
  succeeded(cupti,
            cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                      CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020),
            "CUPTI does not tell of resets");
  for (CUpti_driver_api_trace_cbid id :
       {CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2,
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2,
        CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2})
    succeeded(cupti, cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id),
              "CUPTI does not tell of resets");
  keepCopies(*times->driver, cupti, subscriber);
  return true;
}

} // namespace

void optiml::gpu::beforeContextEnds() {
  if (!times || Quiet::here() || getpid() != times->process)
    return;
  Quiet quiet;
  waitForGpu();
  times->cupti->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

bool optiml::gpu::writeTimesSoFar() {
  if (!times || getpid() != times->process ||
      times->cupti->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != CUPTI_SUCCESS)
    return false;
  std::string error;
  return writeTimes(/*paused=*/true, error);
}

void optiml::gpu::isRecorded(uint32_t correlation) {
  if (!times)
    return;
  std::lock_guard lock(times->mutex);
  times->recorded.insert(correlation);
}

bool optiml::gpu::startKernelTimes(const Driver &driver, const Cupti &cupti, const char *file, bool alone) {
  times = new Times;
  times->driver = &driver;
  times->cupti = &cupti;
  times->file = pathOfProcess(file);
  times->process = getpid();
  if (!succeeded(cupti, cupti.cuptiActivityRegisterCallbacks(bufferRequested, bufferCompleted),
                 "CUPTI does not record activities"))
    return false;
  if (!succeeded(cupti, cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
                 "CUPTI does not record kernels"))
    return false;
  if (alone) {
    for (CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET})
      succeeded(cupti, cupti.cuptiActivityEnable(kind), "CUPTI does not record copies");
    watchContexts(cupti);
  }
  atexit(finish);
  return true;
}
