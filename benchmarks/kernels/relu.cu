// relu: y = max(x, 0) of every element.
//
//   relu [n]      default 16777216, large 67108864
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

template <typename T> __global__ void relu(const T *x, T *y, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[i] = x[i] > T(0) ? x[i] : T(0);
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1LL << 33)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^33\n", argv[0]);
    return EXIT_FAILURE;
  }
  const size_t n = (size_t)count, bytes = n * sizeof(float);

  std::vector<float> x(n), y(n);
  unsigned state = 7;
  for (size_t i = 0; i < n; ++i) { // between -2 and 2
    state = state * 1664525u + 1013904223u;
    x[i] = (float)(state >> 8) / 4194304.0f - 2.0f;
  }

  float *dx, *dy;
  CUDA_CHECK(cudaMalloc(&dx, bytes));
  CUDA_CHECK(cudaMalloc(&dy, bytes));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dy, 0xff, bytes)); // NaN, so that an element that is not written shows

  const unsigned threads = 256;
  const unsigned blocks = (unsigned)((n + threads - 1) / threads);
  relu<float><<<blocks, threads>>>(dx, dy, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(y.data(), dy, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dy));

  size_t wrong = 0;
  for (size_t i = 0; i < n; ++i) { // exact; NaN equals nothing
    float want = x[i] > 0.0f ? x[i] : 0.0f;
    if (!(y[i] == want) && wrong++ < 3)
      fprintf(stderr, "y[%zu] = %g, want %g\n", i, y[i], want);
  }
  printf("%s relu n=%zu\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
