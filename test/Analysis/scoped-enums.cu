// Constants of scoped enumerations keep their type, and a ?: that a template argument decides is what it chooses.
// RUN: %opt --passes='block-shape[pool<Kind::Mean>]{x=64}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[pool<Kind::Mean>]{x=64};block-shape[pick]{x=64}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
#include <cstdio>

enum class Kind { Greatest, Mean };

template <Kind K> __global__ void pool(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = K == Kind::Greatest ? fmaxf(x[2 * i], x[2 * i + 1]) : 0.5f * (x[2 * i] + x[2 * i + 1]);
}
// CHECK: y[i] = 0.5f * (x[2 * i] + x[2 * i + 1]);

__global__ void pick(const float *x, float *y, Kind kind, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && kind == Kind::Mean)
    y[i] += x[i];
}

int main() {
  const int n = 300;
  float *x, *y;
  cudaMallocManaged(&x, 2 * n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  for (int i = 0; i < 2 * n; ++i)
    x[i] = i * 7 % 31;
  pool<Kind::Mean><<<(n + 127) / 128, 128>>>(x, y, n);
  pick<<<(n + 127) / 128, 128>>>(x, y, Kind::Mean, n);
  cudaDeviceSynchronize();
  printf("%g\n", y[17]);
}
