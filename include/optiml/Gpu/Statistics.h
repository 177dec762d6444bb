//===- Statistics.h - of repeated timings -----------------------*- C++ -*-===//
#ifndef OPTIML_GPU_STATISTICS_H
#define OPTIML_GPU_STATISTICS_H

#include <vector>

namespace optiml::gpu {

/// 0 for no values; the mean of the two in the middle for an even number of them.
double median(std::vector<double> values);

struct Interval {
  double low = 0, high = 0;
};

/// The 95 % confidence interval of the median that order statistics give, whatever the distribution (Conover,
/// Practical Nonparametric Statistics, 3rd ed., section 3.2). Below 6 values there is none: least and greatest.
Interval medianInterval(std::vector<double> values);

/// Half of the range between the quartiles, relative to the median.
double relativeSpread(std::vector<double> values);

} // namespace optiml::gpu

#endif
