// Two element-wise kernels, the second in place.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void addBias(const float *x, const float *bias, float *y, int rows, int cols) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= rows * cols)
    return;
  y[at] = x[at] + bias[at % cols];
}

__global__ void relu(float *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] = data[i] > 0 ? data[i] : 0;
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? std::atoi(argv[1]) : 96, cols = argc > 2 ? std::atoi(argv[2]) : 96, n = rows * cols;
  std::vector<float> x(n), bias(cols), y(n);
  for (int i = 0; i < n; ++i)
    x[i] = float(i * 7 % 23) - 11;
  for (int i = 0; i < cols; ++i)
    bias[i] = float(i % 5) - 2;
  float *dx, *dbias, *dy;
  cudaMalloc(&dx, n * sizeof(float));
  cudaMalloc(&dy, n * sizeof(float));
  cudaMalloc(&dbias, cols * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dbias, bias.data(), cols * sizeof(float), cudaMemcpyHostToDevice);
  addBias<<<(n + 255) / 256, 256>>>(dx, dbias, dy, rows, cols);
  relu<<<(n + 255) / 256, 256>>>(dy, n);
  cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  bool good = true;
  for (int i = 0; i < n; ++i)
    good = good && y[i] == (x[i] + bias[i % cols] > 0 ? x[i] + bias[i % cols] : 0);
  std::printf(good ? "PASS\n" : "FAIL\n");
  return !good;
}
