//===- MetricPlan.cpp - the metrics that one kind of GPU has --------------===//
#include "optiml/Gpu/MetricPlan.h"
#include "CuptiParams.h"
#include <cmath>
#include <utility>

using namespace optiml::gpu;

/// Null, and the result says why, when CUPTI does not know the chip.
static CUpti_Profiler_Host_Object *openHost(const Cupti &cupti, const std::string &chip, CUptiResult &result) {
  auto open = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params);
  open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  open.pChipName = chip.c_str();
  result = cupti.cuptiProfilerHostInitialize(&open);
  return result == CUPTI_SUCCESS ? open.pHostObject : nullptr;
}

static void closeHost(const Cupti &cupti, CUpti_Profiler_Host_Object *host) {
  auto close = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params);
  close.pHostObject = host;
  cupti.cuptiProfilerHostDeinitialize(&close);
}

static CUptiResult addMetrics(const Cupti &cupti, CUpti_Profiler_Host_Object *host, std::vector<const char *> names) {
  auto add = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host;
  add.ppMetricNames = names.data();
  add.numMetrics = names.size();
  return cupti.cuptiProfilerHostConfigAddMetrics(&add);
}

static bool chipIsKnown(const Cupti &cupti, const std::string &chip) {
  auto chips = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_GetSupportedChips_Params);
  if (cupti.cuptiProfilerHostGetSupportedChips(&chips) != CUPTI_SUCCESS)
    return true; // for all that is known
  for (size_t i = 0; i < chips.numChips; ++i)
    if (chip == chips.ppChipNames[i])
      return true;
  return false;
}

std::unique_ptr<MetricPlan> MetricPlan::create(const std::string &chip, std::string &why) {
  const Cupti *cupti = Cupti::get(why);
  if (!cupti)
    return nullptr;
  if (!chipIsKnown(*cupti, chip)) {
    why = "this CUPTI does not know the GPU " + chip;
    return nullptr;
  }
  std::unique_ptr<MetricPlan> plan(new MetricPlan);
  plan->chipName = chip;
  CUptiResult result = CUPTI_SUCCESS;
  auto has = [&](const std::vector<const char *> &metrics) {
    CUpti_Profiler_Host_Object *host = openHost(*cupti, chip, result);
    const bool added = host && addMetrics(*cupti, host, metrics) == CUPTI_SUCCESS;
    if (host)
      closeHost(*cupti, host);
    return added;
  };
  for (const CounterMetric &metric : counterMetrics())
    plan->names.push_back(metric.metric);
  if (!has(plan->names)) {
    // Each by itself: one that is refused spoils the configuration that it was added to.
    for (const char *name : std::exchange(plan->names, {}))
      if (has({name}))
        plan->names.push_back(name);
      else
        plan->missing.push_back(name);
    if (result != CUPTI_SUCCESS) {
      why = "CUPTI cannot profile the GPU " + chip + ": " + cupti->message(result);
      return nullptr;
    }
  }
  if (plan->names.empty()) {
    why = "the GPU " + chip + " has none of the metrics that OptiML reads";
    return nullptr;
  }
  return plan->configure(why) ? std::move(plan) : nullptr;
}

bool MetricPlan::configure(std::string &why) {
  const Cupti &cupti = *Cupti::get(why);
  CUptiResult result;
  host = openHost(cupti, chipName, result);
  if (!succeeded(cupti, result, "cuptiProfilerHostInitialize", why) ||
      !succeeded(cupti, addMetrics(cupti, host, names), "cuptiProfilerHostConfigAddMetrics", why))
    return false;
  auto size = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host;
  if (!OPTIML_CUPTI_CALL(cuptiProfilerHostGetConfigImageSize, size))
    return false;
  image.resize(size.configImageSize);
  auto get = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params);
  get.pHostObject = host;
  get.configImageSize = image.size();
  get.pConfigImage = image.data();
  if (!OPTIML_CUPTI_CALL(cuptiProfilerHostGetConfigImage, get))
    return false;
  auto passes = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params);
  passes.configImageSize = image.size();
  passes.pConfigImage = image.data();
  if (!OPTIML_CUPTI_CALL(cuptiProfilerHostGetNumOfPasses, passes))
    return false;
  passCount = passes.numOfPasses;
  return true;
}

MetricPlan::~MetricPlan() {
  std::string why;
  if (host)
    closeHost(*Cupti::get(why), host);
}

bool MetricPlan::evaluate(const std::vector<uint8_t> &counterData, size_t range, RawCounters &raw,
                          std::string &why) const {
  const Cupti &cupti = *Cupti::get(why);
  std::vector<const char *> asked = names; // CUPTI wants an array that it could change
  std::vector<double> values(asked.size(), NAN);
  auto evaluate = OPTIML_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  evaluate.pHostObject = host;
  evaluate.pCounterDataImage = counterData.data();
  evaluate.counterDataImageSize = counterData.size();
  evaluate.rangeIndex = range;
  evaluate.ppMetricNames = asked.data();
  evaluate.numMetrics = asked.size();
  evaluate.pMetricValues = values.data();
  if (!OPTIML_CUPTI_CALL(cuptiProfilerHostEvaluateToGpuValues, evaluate))
    return false;
  for (size_t i = 0; i < asked.size(); ++i)
    if (std::isfinite(values[i]))
      raw[asked[i]] = values[i];
  return true;
}
