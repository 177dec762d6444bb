// reduction: the sum of n floats; every thread adds its element to the total.
//
//   reduction [n]      default 16777216, large 67108864
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

__global__ void sum(const float *in, float *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(total, in[i]);
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1 << 30)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^30\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int n = (int)count;
  const size_t bytes = n * sizeof(float);

  // Whole numbers from -8 to 8 without 0. Positive and negative ones cancel, so that every partial sum stays below 2^24
  // and is exact in single precision, whatever the order.
  std::vector<float> in(n);
  unsigned state = 31;
  long long want = 0;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    int value = (int)(state >> 28) - 8;
    if (value >= 0)
      value++;
    in[i] = (float)value;
    want += value;
  }

  float *dIn, *dTotal;
  CUDA_CHECK(cudaMalloc(&dIn, bytes));
  CUDA_CHECK(cudaMalloc(&dTotal, sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dIn, in.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dTotal, 0, sizeof(float)));

  const int threads = 256;
  sum<<<(n + threads - 1) / threads, threads>>>(dIn, dTotal, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  float got;
  CUDA_CHECK(cudaMemcpy(&got, dTotal, sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dIn));
  CUDA_CHECK(cudaFree(dTotal));

  bool good = got == (double)want; // false for NaN
  if (!good)
    fprintf(stderr, "sum = %.9g, want %lld\n", got, want);
  printf("%s reduction n=%d\n", good ? "PASS" : "FAIL", n);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
