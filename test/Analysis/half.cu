// Numbers of 16 bits: their operators and conversions are read as what they stand for, so that maps, rows that are
// summed up in float, and products go the way that others go. Sums of halves themselves keep their order.
// RUN: optiml-opt --reread --emit --passes='block-shape[map]{x=128};coarsen[map]{x=2,style=strided};block-shape[operators]{x=64};distribute-loop[norms]{threads=32,rows=8};distribute-loop[brains]{threads=64};block-shape[product]{x=16,y=16};coarsen[product]{x=2,y=2};stage-shared[product/k:a+b]{tile=8}' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 50 | %check=SAME
// SAME: the same results
// REQUIRES: optiml-run
// RUN: %refused --passes='distribute-loop[halves]{threads=64}' %s 2>&1 | %check=HALVES
// HALVES: 's' has a type that threads cannot exchange
// RUN: %refused --passes='distribute-loop[shuffled]{threads=64}' %s 2>&1 | %check=SHUFFLED
// SHUFFLED: the kernel's threads work together, or wait for each other
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void map(const __half *x, __half *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = __float2half(a * __half2float(x[i]));
}
// CHECK: y[i + ix * 128] = __float2half(a * __half2float(x[i + ix * 128]));

__global__ void operators(const half *x, half *y, half a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    y[i] = v * 2.0f;
    if (x[i] > y[i])
      y[i] += __hmul(x[i], a) - x[i] * a;
    half z = 0.5f;
    y[i] = -y[i] + z;
  }
}
// CHECK: float v = (float)x[i];
// CHECK-NEXT: y[i] = half(v * 2.0f);
// CHECK-NEXT: if (x[i] > y[i]) {
// CHECK-NEXT: y[i] += __hmul(x[i], a) - x[i] * a;
// CHECK-NEXT: }
// CHECK-NEXT: half z = half(0.5f);
// CHECK-NEXT: y[i] = -y[i] + z;

__global__ void norms(const half *x, half *y, int rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows)
    return;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += (float)x[i * n + j] * float(x[i * n + j]);
  float r = rsqrtf(s / n + 1e-5f);
  for (int j = 0; j < n; ++j)
    y[i * n + j] = (half)((float)x[i * n + j] * r);
}
// CHECK: for (int j = threadIdx.x; j < n; j += 32) {
// CHECK-NEXT: s += (float)x[i * n + j] * (float)x[i * n + j];
// CHECK: y[i * n + j] = half((float)x[i * n + j] * r);

__global__ void brains(const __nv_bfloat16 *x, float *y, int rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows)
    return;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += __bfloat162float(x[i * n + j]);
  y[i] = s;
}
// CHECK: s += __bfloat162float(x[i * n + j]);

__global__ void product(const half *a, const half *b, half *c, int n) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || col >= n)
    return;
  float s = 0;
  for (int k = 0; k < n; ++k)
    s += __half2float(a[row * n + k]) * __half2float(b[k * n + col]);
  c[row * n + col] = __float2half(s);
}
// CHECK: __shared__ __align__(16) half a_tile[8][40];
// CHECK: : half(0.0f);
// CHECK: s[iy][ix] += __half2float(a_tile[k]

__global__ void halves(const half *x, half *y, int rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows)
    return;
  half s = 0.0f;
  for (int j = 0; j < n; ++j)
    s += x[i * n + j];
  y[i] = s;
}

__global__ void shuffled(const half *x, half *y, int rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; ++j)
    y[i * n + j] = __shfl_xor_sync(0xffffffff, x[i * n + j], 1);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 50;
  half *x, *y;
  __nv_bfloat16 *b;
  float *sums;
  cudaMallocManaged(&x, n * n * sizeof(half));
  cudaMallocManaged(&y, n * n * sizeof(half));
  cudaMallocManaged(&b, n * n * sizeof(__nv_bfloat16));
  cudaMallocManaged(&sums, n * sizeof(float));
  for (int i = 0; i < n * n; ++i)
    x[i] = __float2half(float(i % 17) / 8), y[i] = __float2half(1), b[i] = __float2bfloat16(float(i % 11) / 4);
  auto show = [&] {
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < n * n; ++i)
      sum += __half2float(y[i]) * (i % 5 + 1);
    printf("%.9g\n", sum);
  };
  map<<<(n * n + 127) / 128, 128>>>(x, y, 1.5f, n * n), show();
  operators<<<(n * n + 127) / 128, 128>>>(x, y, __float2half(0.5f), n * n), show();
  norms<<<(n + 127) / 128, 128>>>(x, y, n, n), show();
  brains<<<(n + 127) / 128, 128>>>(b, sums, n, n);
  product<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(x, x, y, n), show();
  printf("%g %g\n", sums[0], sums[n - 1]);
}
