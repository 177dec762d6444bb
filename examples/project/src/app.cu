// Makes each row of a matrix sum up to one, and checks that.
#include "rows.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

int main(int argc, char **argv) {
  int rows = argc > 2 ? std::atoi(argv[1]) : 512, cols = argc > 2 ? std::atoi(argv[2]) : 384;
  if (rows < 1 || cols < 1) {
    std::fprintf(stderr, "usage: %s [rows cols]\n", argv[0]);
    return 2;
  }
  std::vector<float> host(size_t(rows) * cols);
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = 1 + float(i % 13);
  float *matrix, *sums;
  cudaMalloc(&matrix, host.size() * sizeof(float));
  cudaMalloc(&sums, rows * sizeof(float));
  cudaMemcpy(matrix, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  rowSums(matrix, sums, rows, cols);
  scaleRows(matrix, sums, rows, cols);
  cudaMemcpy(host.data(), matrix, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess)
    return 1;
  double worst = 0;
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int col = 0; col < cols; ++col)
      sum += host[size_t(row) * cols + col];
    worst = std::fmax(worst, std::fabs(sum - 1));
  }
  std::printf("%d rows: %s\n", rows, worst < 1e-3 ? "each sums up to one" : "WRONG");
  return worst < 1e-3 ? 0 : 1;
}
