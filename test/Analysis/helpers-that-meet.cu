// Functions in which threads wait for each other, or exchange registers, are read in place of their calls. Their own
// shared variables are one for all calls.
// RUN: %opt --block=128x1 --passes='tree-to-shuffle[normalize];coarsen-blocks[sums]{x=2}' %s | FileCheck %s
// RUN: %opt --block=128x1 --passes='thread-per-block[normalize]' %s | %check=ALONE
// RUN: optiml-opt --block=128x1 --emit --passes='thread-per-block[normalize];distribute-loop[normalize]{threads=64};coarsen-blocks[sums]{x=2};coarsen-blocks[twice]{x=2}' %s > %t.cu
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --passes='coarsen-blocks[changing]{x=2}' %s 2>&1 | %check=CHANGING
// RAN-DAG: normalize: 1 optimized, 0 original launches
// RAN-DAG: sums: 1 optimized, 0 original launches
// RAN-DAG: twice: 1 optimized, 0 original launches
// SAME: the same results
// CHANGING: a call may ask for its block
// REQUIRES: optiml-run
#include <cstdio>

__device__ void treeSum(float *s, int t, int n) {
  for (int d = n / 2; d > 0; d /= 2) {
    if (t < d)
      s[t] += s[t + d];
    __syncthreads();
  }
}

__device__ float blockSum(float v, float *s) {
  int t = threadIdx.x;
  s[t] = v;
  __syncthreads();
  treeSum(s, t, blockDim.x);
  float total = s[0];
  __syncthreads();
  return total;
}

__device__ float warpSum(float v) {
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_down_sync(0xffffffff, v, d);
  return v;
}

__device__ float sumByWarps(float v) {
  __shared__ float warps[32];
  int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  v = warpSum(v);
  if (lane == 0)
    warps[w] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? warps[lane] : 0;
  if (w == 0)
    v = warpSum(v);
  return v;
}

__global__ void normalize(const float *x, float *y, int cols) {
  __shared__ float s[128];
  float v = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    v += x[blockIdx.x * cols + i] * x[blockIdx.x * cols + i];
  float total = blockSum(v, s);
  float scale = rsqrtf(total / cols + 1e-5f);
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    y[blockIdx.x * cols + i] = x[blockIdx.x * cols + i] * scale;
}
// CHECK: normalize_optiml
// CHECK: s_of_thread += __shfl_xor_sync
// ALONE: for (int i = 0; i < cols; ++i) {
// ALONE-NOT: __syncthreads

__global__ void sums(const float *x, float *y, int cols) {
  float v = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    v += x[blockIdx.x * cols + i];
  v = sumByWarps(v);
  if (threadIdx.x == 0)
    y[blockIdx.x] = v;
}
// CHECK: sums_optiml
// CHECK: __shared__ float warps[2][32];

__global__ void twice(const float *x, float *y, int cols) {
  float v = 0, most = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    v += x[blockIdx.x * cols + i];
    most += x[blockIdx.x * cols + i] > 8 ? 1 : 0;
  }
  v = sumByWarps(v);
  __syncthreads();
  most = sumByWarps(most);
  if (threadIdx.x == 0)
    y[blockIdx.x] = v / (1 + most);
}

// Another thread may change what the argument is made of before the function uses it.
__device__ float later(float v) {
  __syncthreads();
  return v + threadIdx.x;
}
__global__ void changing(const float *x, float *y) {
  __shared__ float first;
  if (threadIdx.x == 0)
    first = x[blockIdx.x];
  __syncthreads();
  float v = later(first);
  if (threadIdx.x == 0)
    first = 0;
  y[blockIdx.x * 128 + threadIdx.x] = v;
}

int main() {
  float *x, *y, *z;
  const int rows = 16, cols = 200;
  cudaMallocManaged(&x, rows * cols * sizeof(float));
  cudaMallocManaged(&y, rows * cols * sizeof(float));
  cudaMallocManaged(&z, rows * 128 * sizeof(float));
  for (int i = 0; i < rows * cols; ++i)
    x[i] = i % 17;
  normalize<<<rows, 128>>>(x, y, cols);
  changing<<<rows, 128>>>(x, z);
  cudaDeviceSynchronize();
  printf("%g %g\n", y[7], z[200]);
  sums<<<rows, 128>>>(x, y, cols);
  twice<<<rows, 128>>>(x, z, cols);
  cudaDeviceSynchronize();
  printf("%g %g %g\n", y[3], y[15], z[5]);
}
