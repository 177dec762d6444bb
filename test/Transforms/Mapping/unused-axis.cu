// Kernels that look at x alone, launched with blocks of 32 x 8: eight threads do the same. They become one where a
// second one changes nothing.
// RUN: optiml-opt --block=32x8x1 --reread --kernels-only --print-plan --passes='block-shape[rows]{x=64,y=1}' %s | FileCheck %s
// RUN: optiml-opt --block=32x8x1 --reread --emit --passes='promote-accumulator[rows/j:out];distribute-loop[rows]{threads=64};block-shape[scale]{x=256,y=1}' %s > %t.cu
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: optiml-opt --block=32x8x1 --kernels-only --print-plan --passes='block-shape[accumulate]{x=64,y=1}' %s | %check=ONE
// RUN: optiml-opt --block=32x8x1 --kernels-only --print-plan --passes='block-shape[sometimes]{x=64,y=1}' %s | %check=ONE
// RUN: optiml-opt --block=32x8x1 --kernels-only --print-plan --passes='block-shape[count]{x=64,y=1}' %s | %check=ONE
// RUN: optiml-opt --block=32x1x1 --kernels-only --print-plan --passes='block-shape[scale]{x=64,y=1}' %s | %check=ONE
#include <cstdio>
#include <vector>

// CHECK: plan rows: {{.*}}<<<(ceildiv(grid.x * block.x, 64), 1, 1), (64, 1, 1), shared>>>
// CHECK-NOT: grid.y * block.y == 1
// CHECK: when disjoint(a, {{.*}}, out, {{.*}})
// CHECK: when disjoint(out, {{.*}}, x, {{.*}})
// CHECK-NOT: grid.y * block.y == 1
// CHECK: __global__
// SAME: the same results
__global__ void rows(const float *a, const float *x, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = 0;
    for (int j = 0; j < m; ++j)
      out[i] += a[i * m + j] * x[j];
  }
}

__global__ void scale(const float *a, float *out, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = factor * a[i];
}

// The threads race, or add up: the original stays.
// ONE: when grid.y * block.y == 1
__global__ void accumulate(const float *a, const float *x, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int j = 0; j < m; ++j)
      out[i] += a[i * m + j] * x[j];
}

__global__ void sometimes(const float *a, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (a[i] > 0)
      out[i] = 0;
    out[i] += a[i];
  }
}

__global__ void count(const int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&out[a[i] & 7], 1);
}

int main() {
  const int n = 100, m = 33;
  std::vector<float> a(n * m), x(m), out(n);
  for (int i = 0; i < n * m; ++i)
    a[i] = (float)(i % 17) - 8;
  for (int j = 0; j < m; ++j)
    x[j] = (float)(j % 5);
  float *da, *dx, *dout;
  cudaMalloc(&da, sizeof(float) * n * m);
  cudaMalloc(&dx, sizeof(float) * m);
  cudaMalloc(&dout, sizeof(float) * n);
  cudaMemcpy(da, a.data(), sizeof(float) * n * m, cudaMemcpyHostToDevice);
  cudaMemcpy(dx, x.data(), sizeof(float) * m, cudaMemcpyHostToDevice);
  rows<<<(n + 31) / 32, dim3(32, 8)>>>(da, dx, dout, n, m);
  scale<<<(n + 31) / 32, dim3(32, 8)>>>(dout, da, n, 2.0f);
  cudaMemcpy(out.data(), da, sizeof(float) * n, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : out)
    sum += v;
  printf("%g\n", sum);
  return 0;
}
