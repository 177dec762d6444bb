// softmax: the softmax of every row of a matrix in three kernels: the row's maximum, the sum of exponentials, and the
// quotient.
//
//   softmax [rows cols]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expr)                                                                                               \
  do {                                                                                                                 \
    cudaError_t e = (expr);                                                                                            \
    if (e != cudaSuccess) {                                                                                            \
      fprintf(stderr, "softmax.cu:%d: %s: %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorString(e));                \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

__global__ void row_max(const float *x, float *maximum, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float m = x[row * cols];
    for (int j = 1; j < cols; j++)
      m = fmaxf(m, x[row * cols + j]);
    maximum[row] = m;
  }
}

__global__ void row_sum(const float *x, const float *maximum, float *total, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    total[row] = 0.0f;
    for (int j = 0; j < cols; j++)
      total[row] += expf(x[row * cols + j] - maximum[row]);
  }
}

__global__ void normalize(const float *x, const float *maximum, const float *total, float *out, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y;
  if (col < cols)
    out[row * cols + col] = expf(x[row * cols + col] - maximum[row]) / total[row];
}

int main(int argc, char **argv) {
  int rows = 300, cols = 500;
  if (argc > 1)
    rows = atoi(argv[1]);
  if (argc > 2)
    cols = atoi(argv[2]);
  if (rows < 1 || rows > 65535 || cols < 1) {
    fprintf(stderr, "usage: %s [rows cols]   with 1 <= rows <= 65535 and cols >= 1\n", argv[0]);
    return EXIT_FAILURE;
  }

  const size_t count = (size_t)rows * cols;
  std::vector<float> x(count), out(count);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++) // large offsets: without subtracting the maximum, expf overflows
      x[(size_t)i * cols + j] = (float)((i * 29 + j * 71) % 97) * 0.11f + (float)(i % 5) * 40.0f - 20.0f;

  float *dx, *dmax, *dsum, *dout;
  CUDA_CHECK(cudaMalloc(&dx, count * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dmax, rows * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dsum, rows * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&dout, count * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), count * sizeof(float), cudaMemcpyHostToDevice));

  const int threads = 128;
  row_max<<<(rows + threads - 1) / threads, threads>>>(dx, dmax, rows, cols);
  row_sum<<<(rows + threads - 1) / threads, threads>>>(dx, dmax, dsum, rows, cols);
  normalize<<<dim3((cols + threads - 1) / threads, rows), threads>>>(dx, dmax, dsum, dout, rows, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(out.data(), dout, count * sizeof(float), cudaMemcpyDeviceToHost));

  int wrong = 0;
  for (int i = 0; i < rows; i++) {
    const float *row = &x[(size_t)i * cols];
    double m = row[0], sum = 0;
    for (int j = 1; j < cols; j++)
      m = std::fmax(m, row[j]);
    for (int j = 0; j < cols; j++)
      sum += std::exp(row[j] - m);
    for (int j = 0; j < cols; j++) {
      double want = std::exp(row[j] - m) / sum, got = out[(size_t)i * cols + j];
      if (!(std::fabs(got - want) <= 2e-5 * want + 1e-9)) {
        if (wrong++ < 3)
          fprintf(stderr, "row %d column %d: %g, want %g\n", i, j, got, want);
      }
    }
  }
  CUDA_CHECK(cudaFree(dx));
  CUDA_CHECK(cudaFree(dmax));
  CUDA_CHECK(cudaFree(dsum));
  CUDA_CHECK(cudaFree(dout));
  printf("%s softmax rows=%d cols=%d\n", wrong == 0 ? "PASS" : "FAIL", rows, cols);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
