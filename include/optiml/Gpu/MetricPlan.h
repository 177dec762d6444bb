//===- MetricPlan.h - the metrics that one kind of GPU has ------*- C++ -*-===//
//
// The host half of reading counters with CUPTI: it needs CUPTI, and no GPU. A plan holds which of counterMetrics() a
// chip has, how to configure its counters for them, and how to make values of what was read. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_METRICPLAN_H
#define OPTIML_GPU_METRICPLAN_H

#include "optiml/Gpu/Counters.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct CUpti_Profiler_Host_Object;

namespace optiml::gpu {

class MetricPlan {
public:
  /// For a chip by CUPTI's name of it ("GH100"). Null, and `why` says so, when there is no CUPTI, or when it does not
  /// know the chip. Metrics that the chip lacks are left out.
  static std::unique_ptr<MetricPlan> create(const std::string &chip, std::string &why);
  ~MetricPlan();
  MetricPlan(const MetricPlan &) = delete;
  MetricPlan &operator=(const MetricPlan &) = delete;

  const std::string &chip() const { return chipName; }
  /// Full names, in the order of counterMetrics().
  const std::vector<const char *> &metrics() const { return names; }
  const std::vector<std::string> &leftOut() const { return missing; }
  const std::vector<uint8_t> &configImage() const { return image; }
  /// How often a kernel has to run.
  size_t passes() const { return passCount; }

  /// The values of one range of a counter data image, by full name.
  bool evaluate(const std::vector<uint8_t> &counterData, size_t range, RawCounters &raw, std::string &why) const;

private:
  MetricPlan() = default;
  bool configure(std::string &why);

  std::string chipName;
  CUpti_Profiler_Host_Object *host = nullptr;
  std::vector<const char *> names;
  std::vector<std::string> missing;
  std::vector<uint8_t> image;
  size_t passCount = 0;
};

} // namespace optiml::gpu

#endif
