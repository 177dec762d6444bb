// Rows i and j of one matrix: places whose distance is not constant have a tile each.
// RUN: %plan --passes='block-shape[gram]{x=16,y=16};coarsen[gram]{x=2,y=2,style=blocked};stage-shared[gram/k:a]{tile=8}' %s | FileCheck %s
// RUN: optiml-opt --reread --emit --passes='block-shape[gram]{x=16,y=16};coarsen[gram]{x=2,y=2,style=blocked};stage-shared[gram/k:a]{tile=8,wide=1,prefetch=1};qualify-pointers[gram];block-shape[distances]{x=16,y=16};stage-shared[distances/k:a]{tile=8}' %s > %t.cu
// RUN: optiml-run --coverage=off --verify=%t.cu %s | %check=SAME
// RUN: %opt --passes='block-shape[both]{x=16,y=16};stage-shared[both/k:a+b]{tile=8}' %s | %check=BOTH
// RUN: %opt --passes='block-shape[pivoted]{x=32,y=1};stage-shared[pivoted/k:a]{tile=8}' %s | %check=PIVOT
// RUN: %opt --passes='block-shape[distances]{x=16,y=16};stage-shared[distances/k:a]{tile=8}' %s | %check=SQUARES
// RUN: %refused --passes='block-shape[many]{x=16,y=16};stage-shared[many/k:a]{tile=8}' %s 2>&1 | %check=MANY
#include <cstdio>
#include <cstdlib>
#include <vector>

// CHECK: when disjoint(a, 4 * (m * n), c, 4 * (n * n))
// CHECK-DAG: __shared__ __align__(16) float a_tile[8][36];
// CHECK-DAG: __shared__ __align__(16) float a_tile1[8][36];
// CHECK: a_tile[{{.*}}] = {{.*}}a[{{.*}}blockIdx.y{{.*}}] : 0.0f;
// CHECK: a_tile1[{{.*}}] = {{.*}}a[{{.*}}blockIdx.x{{.*}}] : 0.0f;
// CHECK: __syncthreads();
// The bound is tested, for alpha times zero need not be zero.
// CHECK: if (k0 + k < m) {
// CHECK: s{{.*}} += alpha * a_tile[k][{{.*}}threadIdx.y{{.*}}] * a_tile1[k][{{.*}}threadIdx.x{{.*}}];
// SAME: the same results
__global__ void gram(const float *a, float *c, int n, int m, float alpha) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  float s = 0.0f;
  for (int k = 0; k < m; ++k)
    s += alpha * a[i * m + k] * a[j * m + k];
  c[i * n + j] = s;
}

// BOTH-COUNT-4: __shared__ __align__(16) float {{[ab]}}_tile{{.*}};
__global__ void both(const float *a, const float *b, float *c, int n, int m) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  float s = 0.0f;
  for (int k = 0; k < m; ++k)
    s += a[i * m + k] * b[j * m + k] + b[i * m + k] * a[j * m + k];
  c[i * n + j] = s;
}

// What all threads read at one place is left to the cache.
// PIVOT: __shared__ __align__(16) float a_tile[8];
// PIVOT-NOT: __shared__
// PIVOT: a_tile[k] * a[p]
__global__ void pivoted(const float *a, float *c, int n, int m, int p) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0.0f;
  for (int k = 0; k < m; ++k)
    s += a[k] * a[p];
  if (j < n)
    c[j] = s;
}

// Beyond the end both tiles are zero, and so are differences and their squares: no test of the bound.
// SQUARES: for (int k = 0; k < 8; ++k) {
// SQUARES-NEXT: float d = a_tile[k][threadIdx.y] - a_tile1[k][threadIdx.x];
// SQUARES-NEXT: s += d * d;
__global__ void distances(const float *a, float *c, int n, int m) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  float s = 0.0f;
  for (int k = 0; k < m; ++k) {
    float d = a[i * m + k] - a[j * m + k];
    s += d * d;
  }
  c[i * n + j] = s;
}

// MANY: a is read at more than 4 places whose distance is not constant
__global__ void many(const float *a, float *c, int n, int m, int p, int q, int r) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  float s = 0.0f;
  for (int k = 0; k < m; ++k)
    s += a[i * m + k] + a[j * m + k] + a[p * m + k] + a[q * m + k] + a[r * m + k];
  c[i * n + j] = s;
}

int main() {
  const int sizes[][2] = {{96, 64}, {77, 61}, {33, 4}};
  for (auto [n, m] : sizes) {
    std::vector<float> a(n * m), c(2 * n * n);
    for (int i = 0; i < n * m; ++i)
      a[i] = (float)(i * 7919 % 101) / 101.0f - 0.5f;
    float *da, *dc;
    cudaMalloc(&da, sizeof(float) * n * m);
    cudaMalloc(&dc, sizeof(float) * 2 * n * n);
    cudaMemcpy(da, a.data(), sizeof(float) * n * m, cudaMemcpyHostToDevice);
    gram<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(da, dc, n, m, 1.5f);
    distances<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(da, dc + n * n, n, m);
    cudaMemcpy(c.data(), dc, sizeof(float) * 2 * n * n, cudaMemcpyDeviceToHost);
    double sum = 0;
    for (float v : c)
      sum += v;
    printf("%g\n", sum);
    cudaFree(da);
    cudaFree(dc);
  }
  return 0;
}
