// sigmoid: y = 1 / (1 + exp(-x)) of every element.
//
//   sigmoid [n]      default 16777216, large 67108864
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

__global__ void sigmoid(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 1.0f / (1.0f + expf(-x[i]));
}

int main(int argc, char **argv) {
  long long count = argc > 1 ? atoll(argv[1]) : 16777216;
  if (argc > 2 || count < 1 || count > (1 << 30)) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 2^30\n", argv[0]);
    return EXIT_FAILURE;
  }
  const int n = (int)count;
  const size_t bytes = n * sizeof(float);

  std::vector<float> x(n), y(n);
  unsigned state = 2024;
  for (float &value : x) { // between -10 and 10
    state = state * 1664525u + 1013904223u;
    value = (float)(state >> 8) / 16777216.0f * 20.0f - 10.0f;
  }

  float *dx, *dy;
  CUDA_CHECK(cudaMalloc(&dx, bytes));
  CUDA_CHECK(cudaMalloc(&dy, bytes));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dy, 0xff, bytes)); // NaN, so that an element that is not written shows

  const int threads = 256;
  sigmoid<<<(n + threads - 1) / threads, threads>>>(dx, dy, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(y.data(), dy, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dy));

  // A few rounding errors of single precision, relative to the result; NaN fails.
  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    double want = 1.0 / (1.0 + exp(-(double)x[i]));
    if (!(fabs(y[i] - want) <= 5e-6 * want) && wrong++ < 3)
      fprintf(stderr, "y[%d] = %g, want %g\n", i, y[i], want);
  }
  printf("%s sigmoid n=%d\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
