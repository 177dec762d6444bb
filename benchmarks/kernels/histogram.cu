// histogram: counts n 32-bit values in 256 bins by their upper eight bits, one global atomic a value.
//
//   histogram [n]      default 16777216, large 67108864
#include <cstdio>
#include <cstdlib>
#include <vector>

#define BINS 256

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void histogram(const unsigned *values, size_t n, unsigned *counts) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned bin = values[i] >> 24;
    atomicAdd(&counts[bin], 1u);
  }
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1LL << 31)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^31\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t n = (size_t)count;

  std::vector<unsigned> values(n), counts(BINS), want(BINS, 0);
  unsigned state = 8;
  for (unsigned &value : values) { // the mean of two random numbers: bins in the middle are fuller
    state = state * 1664525u + 1013904223u;
    unsigned first = state;
    state = state * 1664525u + 1013904223u;
    value = first / 2 + state / 2;
  }

  unsigned *dValues, *dCounts;
  CUDA_CHECK(cudaMalloc(&dValues, n * sizeof(unsigned)));
  CUDA_CHECK(cudaMalloc(&dCounts, BINS * sizeof(unsigned)));
  CUDA_CHECK(cudaMemcpy(dValues, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dCounts, 0, BINS * sizeof(unsigned)));

  const unsigned threads = 256;
  const unsigned blocks = (unsigned)((n + threads - 1) / threads);
  histogram<<<blocks, threads>>>(dValues, n, dCounts);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(counts.data(), dCounts, BINS * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dValues));
  CUDA_CHECK(cudaFree(dCounts));

  for (size_t i = 0; i < n; ++i)
    want[values[i] >> 24]++;
  int wrong = 0;
  for (int b = 0; b < BINS; ++b)
    if (counts[b] != want[b] && wrong++ < 3)
      fprintf(stderr, "bin %d: %u, want %u\n", b, counts[b], want[b]);
  printf("%s histogram n=%zu\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
