// gemv: y = A x for a row-major matrix, one thread a row.
//
//   gemv [rows cols]      default 4096 4096, large 8192 8192
#include <algorithm>
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

__global__ void gemv(const float *a, const float *x, float *y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int j = 0; j < cols; j++)
      sum += a[(size_t)row * cols + j] * x[j];
    y[row] = sum;
  }
}

static void fill(std::vector<float> &values, unsigned seed) { // between -1 and 1
  for (float &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? atoi(argv[1]) : 4096;
  int cols = argc > 2 ? atoi(argv[2]) : 4096;
  if (argc > 3 || rows < 1 || rows > 10000000 || cols < 1 || cols > 10000000) {
    fprintf(stderr, "usage: %s [rows cols]   each from 1 to 1e7\n", argv[0]);
    return EXIT_FAILURE;
  }

  std::vector<float> a((size_t)rows * cols), x(cols), y(rows);
  fill(a, 11);
  fill(x, 12);

  float *da, *dx, *dy;
  CUDA_CHECK(cudaMalloc(&da, a.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dx, x.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dy, y.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dy, 0xff, y.size() * sizeof(float))); // NaN, so that an element that is not written shows

  const int threads = 128;
  gemv<<<(rows + threads - 1) / threads, threads>>>(da, dx, dy, rows, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(y.data(), dy, y.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(da));
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dy));

  // All rows, or of a large matrix the first, the last and others anywhere, 7e7 elements together. Rounding is relative
  // to the sum of the absolute products. NaN fails.
  const int checked = (int)std::min<size_t>(rows, std::max<size_t>(1000, 70000000 / cols));
  int wrong = 0;
  unsigned state = 1;
  for (int s = 0; s < checked; s++) {
    state = state * 1664525u + 1013904223u;
    int row = checked == rows ? s : s == 0 ? 0 : s == 1 ? rows - 1 : (int)((state >> 7) % rows);
    const float *line = &a[(size_t)row * cols];
    double want = 0, magnitude = 0;
    for (int j = 0; j < cols; j++) {
      double product = (double)line[j] * x[j];
      want += product;
      magnitude += fabs(product);
    }
    if (!(fabs(y[row] - want) <= 1e-5 * magnitude) && wrong++ < 3)
      fprintf(stderr, "y[%d] = %g, want %g\n", row, y[row], want);
  }
  printf("%s gemv rows=%d cols=%d\n", wrong ? "FAIL" : "PASS", rows, cols);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
