// histogram: counts n samples into equal bins between lo and hi with global atomics (samples outside are left out),
// then turns the counts into a cumulative histogram.
//
//   histogram [n] [bins]
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Range {
  float lo, hi;
};

#define TRY(x)                                                                                                         \
  if (cudaError_t e = (x)) {                                                                                           \
    std::fprintf(stderr, "histogram: %s (line %d)\n", cudaGetErrorString(e), __LINE__);                                \
    return 2;                                                                                                          \
  }

__host__ __device__ inline int binOf(float value, Range range, int bins) {
  if (!(value >= range.lo && value < range.hi))
    return -1;
  int bin = static_cast<int>((value - range.lo) / (range.hi - range.lo) * bins);
  return bin < bins ? bin : bins - 1;
}

__global__ void histogram(const float *samples, size_t n, Range range, uint32_t *counts, int bins) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    int bin = binOf(samples[i], range, bins);
    if (bin < 0)
      continue;
    atomicAdd(&counts[bin], 1u);
  }
}

__global__ void cumulate(const uint32_t *counts, uint32_t *cumulative, int bins) {
  int bin = blockIdx.x * blockDim.x + threadIdx.x;
  if (bin >= bins)
    return;
  uint32_t sum = 0;
  for (int b = 0; b <= bin; ++b)
    sum += counts[b];
  cumulative[bin] = sum;
}

int main(int argc, char **argv) {
  const long long n = argc > 1 ? std::atoll(argv[1]) : 500000;
  const int bins = argc > 2 ? std::atoi(argv[2]) : 200;
  if (n < 1 || bins < 1) {
    std::fprintf(stderr, "usage: %s [n] [bins]   both at least 1\n", argv[0]);
    return 2;
  }
  const Range range{-1.0f, 3.0f};

  std::vector<float> samples(n);
  uint32_t state = 99;
  for (auto &sample : samples) { // a triangle between -1.5 and 3.5
    state = state * 1664525u + 1013904223u;
    float first = static_cast<float>(state >> 8) / 16777216.0f;
    state = state * 1664525u + 1013904223u;
    float second = static_cast<float>(state >> 8) / 16777216.0f;
    sample = -1.5f + 2.5f * (first + second);
  }

  float *dSamples;
  uint32_t *dCounts, *dCumulative;
  TRY(cudaMalloc(&dSamples, n * sizeof(float)));
  TRY(cudaMalloc(&dCounts, bins * sizeof(uint32_t)));
  TRY(cudaMalloc(&dCumulative, bins * sizeof(uint32_t)));
  TRY(cudaMemcpy(dSamples, samples.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  TRY(cudaMemset(dCounts, 0, bins * sizeof(uint32_t)));

  const int threads = 128, blocks = 64;
  histogram<<<blocks, threads>>>(dSamples, static_cast<size_t>(n), range, dCounts, bins);
  TRY(cudaGetLastError());
  cumulate<<<(bins + threads - 1) / threads, threads>>>(dCounts, dCumulative, bins);
  TRY(cudaGetLastError());

  std::unique_ptr<uint32_t[]> counts(new uint32_t[bins]), cumulative(new uint32_t[bins]);
  TRY(cudaMemcpy(counts.get(), dCounts, bins * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  TRY(cudaMemcpy(cumulative.get(), dCumulative, bins * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  TRY(cudaFree(dSamples));
  TRY(cudaFree(dCounts));
  TRY(cudaFree(dCumulative));

  // The reference bins in double precision; a sample within rounding of an edge may fall to either side, so each bin is
  // compared with the range that leaves it.
  std::vector<int64_t> least(bins, 0), most(bins, 0);
  for (float sample : samples) {
    double position = (static_cast<double>(sample) - range.lo) / (static_cast<double>(range.hi) - range.lo) * bins;
    double nearest = static_cast<double>(static_cast<long long>(position + 0.5));
    bool near = position - nearest < 1e-6 * bins && nearest - position < 1e-6 * bins;
    if (sample < range.lo || !(sample < range.hi))
      continue;
    int below = static_cast<int>(near ? nearest - 1 : position), above = static_cast<int>(near ? nearest : position);
    if (below >= 0)
      most[below]++;
    if (near && above < bins)
      most[above]++;
    if (!near)
      least[below]++;
  }
  int wrong = 0;
  uint32_t sum = 0;
  for (int b = 0; b < bins; ++b) {
    sum += counts[b];
    if (counts[b] < least[b] || counts[b] > most[b] || cumulative[b] != sum) {
      if (wrong++ == 0)
        std::fprintf(stderr, "bin %d: count %" PRIu32 ", want %" PRId64 " to %" PRId64 "; cumulative %" PRIu32 "\n", b,
                     counts[b], least[b], most[b], cumulative[b]);
    }
  }
  int64_t inside = 0;
  for (float sample : samples)
    inside += sample >= range.lo && sample < range.hi;
  if (sum != inside)
    wrong++;
  std::printf("%s histogram n=%lld bins=%d inside=%" PRIu32 "\n", wrong ? "FAIL" : "PASS", n, bins, sum);
  return wrong ? 1 : 0;
}
