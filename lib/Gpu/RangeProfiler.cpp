//===- RangeProfiler.cpp - hardware counters of kernels, in process -------===//
#include "optiml/Gpu/RangeProfiler.h"
#include "CuptiParams.h"
#include "optiml/Gpu/Driver.h"

using namespace optiml::gpu;

/// May be called as often as one likes.
static bool initialize(const Cupti &cupti, std::string &why) {
  auto params = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Initialize_Params);
  if (OPTIML_CUPTI_CALL(cuptiProfilerInitialize, params))
    return true;
  // CUPTI has no word for a machine without a GPU.
  if (std::string missing; !Driver::get(missing))
    why = missing;
  return false;
}

std::string optiml::gpu::chipName(unsigned device, std::string &why) {
  const Cupti *table = Cupti::get(why);
  if (!table || !initialize(*table, why))
    return "";
  const Cupti &cupti = *table;
  auto name = OPTIML_CUPTI_PARAMS(CUpti_Device_GetChipName_Params);
  name.deviceIndex = device;
  if (!OPTIML_CUPTI_CALL(cuptiDeviceGetChipName, name))
    return "";
  return name.pChipName;
}

std::unique_ptr<RangeProfiler> RangeProfiler::create(CUcontext context, const MetricPlan &plan, std::string &why) {
  const Cupti *cupti = Cupti::get(why);
  if (!cupti || !initialize(*cupti, why))
    return nullptr;
  std::unique_ptr<RangeProfiler> result(new RangeProfiler(*cupti, context, plan));
  // Configured at once, so that missing permissions are known here.
  if (!result->enable(why) || !result->configure(why))
    return nullptr;
  return result;
}

RangeProfiler::~RangeProfiler() { disable(); }

bool RangeProfiler::enable(std::string &why) {
  auto enable = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params);
  enable.ctx = context;
  if (!OPTIML_CUPTI_CALL(cuptiRangeProfilerEnable, enable))
    return false;
  profiler = enable.pRangeProfilerObject;
  configured = used = false;
  std::vector<const char *> names = plan.metrics();
  auto size = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params);
  size.pRangeProfilerObject = profiler;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = mostKernels;
  size.maxNumRangeTreeNodes = mostKernels;
  if (!OPTIML_CUPTI_CALL(cuptiRangeProfilerGetCounterDataSize, size))
    return false;
  counterData.assign(size.counterDataSize, 0);
  return true;
}

void RangeProfiler::disable() {
  if (!profiler)
    return;
  auto disable = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params);
  disable.pRangeProfilerObject = profiler;
  cupti.cuptiRangeProfilerDisable(&disable);
  profiler = nullptr;
}

/// Empties the counter data, which otherwise keeps the ranges of the last call, and begins anew with the first pass.
bool RangeProfiler::configure(std::string &why) {
  auto clear = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
  clear.pRangeProfilerObject = profiler;
  clear.counterDataSize = counterData.size();
  clear.pCounterData = counterData.data();
  if (!OPTIML_CUPTI_CALL(cuptiRangeProfilerCounterDataImageInitialize, clear))
    return false;
  auto config = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params);
  config.pRangeProfilerObject = profiler;
  config.configSize = plan.configImage().size();
  config.pConfig = plan.configImage().data();
  config.counterDataImageSize = counterData.size();
  config.pCounterDataImage = counterData.data();
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_KernelReplay;
  config.maxRangesPerPass = mostKernels;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  config.passIndex = 0;
  config.targetNestingLevel = 1;
  configured = OPTIML_CUPTI_CALL(cuptiRangeProfilerSetConfig, config);
  return configured;
}

bool RangeProfiler::collect(const std::function<bool()> &launchAndSynchronize, bool &launched, std::string &why) {
  // Kernels are replayed by CUPTI itself, so that one round does; the loop is for a CUPTI that wants another.
  bool complete = false;
  for (size_t round = 0; round <= plan.passes() && !complete; ++round) {
    auto start = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params);
    start.pRangeProfilerObject = profiler;
    if (!OPTIML_CUPTI_CALL(cuptiRangeProfilerStart, start))
      return false;
    configured = false;
    used = true;
    launched = launchAndSynchronize();
    auto stop = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params);
    stop.pRangeProfilerObject = profiler;
    bool stopped = OPTIML_CUPTI_CALL(cuptiRangeProfilerStop, stop);
    if (!launched)
      why = "the launch failed while its counters were read";
    if (!launched || !stopped)
      return false;
    complete = stop.isAllPassSubmitted;
  }
  if (!complete) {
    why = "CUPTI did not read all counters in the passes that it planned";
    return false;
  }
  auto decode = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params);
  decode.pRangeProfilerObject = profiler;
  if (!OPTIML_CUPTI_CALL(cuptiRangeProfilerDecodeData, decode))
    return false;
  if (decode.numOfRangeDropped == 0)
    return true;
  why = "counters are read of at most " + std::to_string(mostKernels) + " kernels at a time";
  return false;
}

bool RangeProfiler::read(RawCounters &raw, std::string &why) const {
  auto info = OPTIML_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params);
  info.pCounterDataImage = counterData.data();
  info.counterDataImageSize = counterData.size();
  if (!OPTIML_CUPTI_CALL(cuptiRangeProfilerGetCounterDataInfo, info))
    return false;
  std::vector<RawCounters> kernels(info.numTotalRanges);
  for (size_t i = 0; i < kernels.size(); ++i)
    if (!plan.evaluate(counterData, i, kernels[i], why))
      return false;
  if (kernels.empty()) {
    why = "no kernel ran while counters were read";
    return false;
  }
  raw = combine(kernels);
  return true;
}

bool RangeProfiler::profile(const std::function<bool()> &launchAndSynchronize, RawCounters &raw, std::string &why) {
  raw.clear();
  bool launched = true;
  auto once = [&] {
    return (configured || configure(why)) && collect(launchAndSynchronize, launched, why) && read(raw, why);
  };
  auto afresh = [&] {
    disable();
    return enable(why) && once();
  };
  if (!profiler)
    return afresh();
  // A profiler that served before may have come out of step, by a kernel that failed, say: a new one gets a try.
  bool servedBefore = used;
  return once() || (servedBefore && launched && afresh());
}
