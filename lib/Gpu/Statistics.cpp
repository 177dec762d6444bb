//===- Statistics.cpp - of repeated timings -------------------------------===//
#include "optiml/Gpu/Statistics.h"
#include <algorithm>
#include <cmath>
#include <cstddef>

using namespace optiml::gpu;

double optiml::gpu::median(std::vector<double> values) {
  if (values.empty())
    return 0;
  size_t n = values.size();
  std::sort(values.begin(), values.end());
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Interval optiml::gpu::medianInterval(std::vector<double> values) {
  if (values.empty())
    return {};
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  if (n < 6)
    return {values.front(), values.back()};
  // The largest r for which P(Binomial(n, 1/2) < r) is at most 0.025: the interval is [x_r, x_(n+1-r)], counted from 1.
  double term = std::pow(0.5, double(n)), below = term; // P(= 0), P(≤ 0)
  size_t r = 0;
  while (below <= 0.025) {
    ++r;
    term *= double(n - r + 1) / double(r);
    below += term;
  }
  r = std::max<size_t>(r, 1);
  return {values[r - 1], values[n - r]};
}

double optiml::gpu::relativeSpread(std::vector<double> values) {
  double middle = median(values);
  if (values.size() < 2 || !(middle > 0))
    return 0;
  std::sort(values.begin(), values.end());
  return (values[values.size() * 3 / 4] - values[values.size() / 4]) / 2 / middle;
}
