// Helpers of one expression in which floats become doubles, or with a square root, are read in place of their calls.
// RUN: %opt --fp=fast --passes='fast-arithmetic[improvement]{use=single}' %s | %check=SINGLE
// RUN: %opt --passes='reciprocal-roots[unit]' %s | %check=ROOT
// RUN: %opt --passes='block-shape[plain]{x=64}' %s | %check=PLAIN
// RUN: optiml-opt --reread --emit --fp=fast --passes='fast-arithmetic[improvement]{use=single};reciprocal-roots[unit];block-shape[plain]{x=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu --fp=fast %s | %check=SAME
// SAME: the same results
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

__device__ float density(float x) { return exp(-0.5 * x * x) / sqrt(2.0 * 3.14159265358979); }
__device__ float half_of(float x) { return 0.5 * x + 1e-6; }
__device__ float length(float x, float y) { return sqrtf(x * x + y * y); }
__device__ float product(float x, float y) { return x * y + 1.0f; }

// SINGLE: expf(-0.5f * z * z) / sqrtf(2.0f * 3.14159265358979f)
// SINGLE: 0.5f * z + 1e-6f
__global__ void improvement(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float z = x[i] * 3.0f;
    y[i] = z * density(z) + half_of(z);
  }
}

// ROOT: rsqrtf(
__global__ void unit(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float a = x[i] + 1.0f, b = a * 0.5f;
    y[i] = a / length(a, b);
  }
}

// What has no other form stays a call.
// PLAIN: y[i] = product(x[i], 2.0f);
__global__ void plain(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = product(x[i], 2.0f);
}

int main() {
  const int n = 300;
  float *x, *y;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  for (int i = 0; i < n; ++i)
    x[i] = i % 17 * 0.125f - 1;
  double sum = 0;
  auto add = [&] {
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i)
      sum += y[i];
  };
  improvement<<<2, 150>>>(x, y, n);
  add();
  unit<<<2, 150>>>(x, y, n);
  add();
  plain<<<2, 150>>>(x, y, n);
  add();
  printf("%.3f\n", sum);
}
