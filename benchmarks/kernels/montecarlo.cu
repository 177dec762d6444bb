// montecarlo: estimates the integral of exp(-x^2) * sqrt(1 + y^2) over the unit square (about 0.8572) from random
// points. Every thread takes 16 points and adds the sum of its function values to the total.
//
//   montecarlo [samples]      default 16777216, large 67108864
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define SAMPLES_PER_THREAD 16

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

// A random number for every counter.
__host__ __device__ inline unsigned randomBits(unsigned counter) {
  unsigned h = counter * 2654435761u + 12345u;
  h ^= h >> 16;
  h *= 0x7feb352du;
  h ^= h >> 15;
  h *= 0x846ca68bu;
  h ^= h >> 16;
  return h;
}

// Between 0 and 1, without 1; exact in single precision.
__host__ __device__ inline float uniform(unsigned counter) { return (float)(randomBits(counter) >> 8) / 16777216.0f; }

__device__ float f(float x, float y) { return expf(-x * x) * sqrtf(1.0f + y * y); }

__global__ void estimate(unsigned samples, double *total) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned first = thread * SAMPLES_PER_THREAD;
  if (first >= samples)
    return;

  float sum = 0.0f;
  for (unsigned s = first; s < first + SAMPLES_PER_THREAD && s < samples; ++s) {
    float x = uniform(2 * s);
    float y = uniform(2 * s + 1);
    sum += f(x, y);
  }
  atomicAdd(total, (double)sum);
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1 << 30)) {
    fprintf(stderr, "usage: %s [samples]   with 1 <= samples <= 2^30\n", argv[0]);
    return EXIT_FAILURE;
  }
  const unsigned samples = (unsigned)count;

  double *dTotal;
  CUDA_CHECK(cudaMalloc(&dTotal, sizeof(double)));
  CUDA_CHECK(cudaMemset(dTotal, 0, sizeof(double)));

  const unsigned threads = 256;
  const unsigned needed = (samples + SAMPLES_PER_THREAD - 1) / SAMPLES_PER_THREAD;
  estimate<<<(needed + threads - 1) / threads, threads>>>(samples, dTotal);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  double total;
  CUDA_CHECK(cudaMemcpy(&total, dTotal, sizeof(double), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dTotal));

  double sum = 0; // at the same points in double precision
  for (unsigned s = 0; s < samples; ++s) {
    double x = uniform(2 * s), y = uniform(2 * s + 1);
    sum += exp(-x * x) * sqrt(1.0 + y * y);
  }
  // The function is positive: rounding is relative to the sum, a few parts in 10^7 for each value and less for many.
  double got = total / samples, want = sum / samples;
  bool good = fabs(got - want) <= 1e-6 * want; // false for NaN
  if (!good)
    fprintf(stderr, "integral = %.9g, want %.9g\n", got, want);
  printf("%s montecarlo samples=%u\n", good ? "PASS" : "FAIL", samples);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
