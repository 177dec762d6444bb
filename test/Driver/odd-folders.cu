// The folder of the source may have any name: what the rewritten program includes is found there.
// RUN: rm -rf %t.d && mkdir -p "%t.d/a b,c'd(e)" && cp %s "%t.d/a b,c'd(e)/rows.cu"
// RUN: echo "#define TWICE 2" > "%t.d/a b,c'd(e)/twice.h"
// RUN: cd %t.d && optiml-clang -O-search=3 --optiml-backend=cpu -arch=sm_90 "a b,c'd(e)/rows.cu" -o rows 2>&1 | FileCheck %s
// CHECK-NOT: warning
// CHECK: times faster
#include "twice.h"
#include <cstdio>

__global__ void rows(const float *in, float *out, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int c = 0; c < m; ++c)
    s += in[r * m + c] * TWICE;
  out[r] = s;
}

int main() {
  const int n = 256, m = 512;
  float *in, *out, host[n];
  cudaMalloc(&in, n * m * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(in, 0, n * m * sizeof(float));
  rows<<<n / 64, 64>>>(in, out, n, m);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g\n", host[n - 1]);
}
