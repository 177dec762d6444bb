// Where only the first block has work, the others say nothing about the time of a launch.
// REQUIRES: optiml-search
// RUN: rm -rf %t && mkdir %t
// RUN: optiml-clang -O-search=1 --optiml-backend=cpu -arch=sm_90 --optiml-store=none %s -o %t/program 2> %t/log
// RUN: FileCheck %s < %t/log
// A chain of 20000 multiply-adds takes at least 40 us.
// CHECK: baseline {{[4-9][0-9]|[1-9][0-9][0-9]}}.{{[0-9]}} us
#include <cstdio>

__global__ void powers(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    for (int k = 0; k < 20000; k++)
      v = v * 0.999f + 0.001f;
    y[i] = v;
  }
}

int main() {
  const int n = 255;
  float *x, *y, result[n];
  cudaMalloc(&x, sizeof(result));
  cudaMalloc(&y, sizeof(result));
  cudaMemset(x, 0, sizeof(result));
  powers<<<4096, 256>>>(x, y, n);
  cudaMemcpy(result, y, sizeof(result), cudaMemcpyDeviceToHost);
  printf("%g\n", result[n - 1]);
  return !(result[n - 1] > 0.99f);
}
