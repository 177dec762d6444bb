// Rows are divided by their sums: a kernel of a thread a row, and one of a thread an element.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void rowSum(const float *x, float *sum, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float s = 0;
    for (int c = 0; c < cols; ++c)
      s += x[row * cols + c];
    sum[row] = s;
  }
}

__global__ void divide(float *x, const float *sum, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] /= sum[i / cols];
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? std::atoi(argv[1]) : 256, cols = argc > 2 ? std::atoi(argv[2]) : 256, n = rows * cols;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i)
    x[i] = float(i * 7 % 23) + 1;
  float *dx, *dsum;
  cudaMalloc(&dx, n * sizeof(float));
  cudaMalloc(&dsum, rows * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  rowSum<<<(rows + 127) / 128, 128>>>(dx, dsum, rows, cols);
  divide<<<(n + 255) / 256, 256>>>(dx, dsum, n, cols);
  cudaMemcpy(y.data(), dx, n * sizeof(float), cudaMemcpyDeviceToHost);
  bool good = true;
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < cols; ++c)
      sum += x[r * cols + c];
    for (int c = 0; c < cols; ++c)
      good = good && y[r * cols + c] * sum < 1.00001 * x[r * cols + c] &&
             y[r * cols + c] * sum > 0.99999 * x[r * cols + c];
  }
  std::printf(good ? "PASS\n" : "FAIL\n");
  return !good;
}
