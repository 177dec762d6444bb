// blackscholes: the prices of European call and put options after Black and Scholes, one thread an option.
//
//   blackscholes [n]      default 4194304, large 16777216
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

// The cumulative normal distribution.
__device__ float normalCdf(float d) { return 0.5f * erfcf(-d / sqrtf(2.0f)); }

__global__ void blackScholes(const float *price, const float *strike, const float *years, float rate, float volatility,
                             float *call, float *put, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;

  float s = price[i];
  float k = strike[i];
  float t = years[i];
  float d1 = (logf(s / k) + (rate + 0.5f * volatility * volatility) * t) / (volatility * sqrtf(t));
  float d2 = d1 - volatility * sqrtf(t);
  call[i] = s * normalCdf(d1) - k * expf(-rate * t) * normalCdf(d2);
  put[i] = k * expf(-rate * t) * normalCdf(-d2) - s * normalCdf(-d1);
}

static void fill(std::vector<float> &values, unsigned seed, float low, float high) {
  for (float &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = low + (high - low) * ((float)(seed >> 8) / 16777216.0f);
  }
}

static double referenceCdf(double d) { return 0.5 * erfc(-d / sqrt(2.0)); }

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 4194304;
  if (argc > 2 || count < 1 || count > (1 << 30)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^30\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int n = (int)count;
  const size_t bytes = n * sizeof(float);
  const float rate = 0.02f, volatility = 0.3f;

  std::vector<float> price(n), strike(n), years(n), call(n), put(n);
  fill(price, 1, 5.0f, 30.0f);
  fill(strike, 2, 1.0f, 100.0f);
  fill(years, 3, 0.25f, 10.0f);

  float *dPrice, *dStrike, *dYears, *dCall, *dPut;
  CUDA_CHECK(cudaMalloc(&dPrice, bytes));
  CUDA_CHECK(cudaMalloc(&dStrike, bytes));
  CUDA_CHECK(cudaMalloc(&dYears, bytes));
  CUDA_CHECK(cudaMalloc(&dCall, bytes));
  CUDA_CHECK(cudaMalloc(&dPut, bytes));
  CUDA_CHECK(cudaMemcpy(dPrice, price.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dStrike, strike.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dYears, years.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dCall, 0xff, bytes)); // NaN, so that an element that is not written shows
  CUDA_CHECK(cudaMemset(dPut, 0xff, bytes));

  const int threads = 256;
  blackScholes<<<(n + threads - 1) / threads, threads>>>(dPrice, dStrike, dYears, rate, volatility, dCall, dPut, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(call.data(), dCall, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(put.data(), dPut, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dPrice));
  CUDA_CHECK(cudaFree(dStrike));
  CUDA_CHECK(cudaFree(dYears));
  CUDA_CHECK(cudaFree(dCall));
  CUDA_CHECK(cudaFree(dPut));

  // Either price is the difference of two terms below s and k, so that rounding is relative to these. NaN fails.
  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    double s = price[i], k = strike[i], t = years[i], r = rate, v = volatility;
    double d1 = (log(s / k) + (r + 0.5 * v * v) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    double wantCall = s * referenceCdf(d1) - k * exp(-r * t) * referenceCdf(d2);
    double wantPut = wantCall - s + k * exp(-r * t);
    double bound = 2e-6 * (s + k);
    if (!(fabs(call[i] - wantCall) <= bound && fabs(put[i] - wantPut) <= bound) && wrong++ < 3)
      fprintf(stderr, "option %d: %g %g, want %g %g\n", i, call[i], put[i], wantCall, wantPut);
  }
  printf("%s blackscholes n=%d\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
