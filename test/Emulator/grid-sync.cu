// Cooperative launches: grid.sync() orders what all blocks do.
// RUN: optiml-run --check=verify %s | FileCheck %s
// CHECK: sum 1000
// CHECK-NEXT: rounds 3

#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

__global__ void sum(const float *in, float *parts, float *out, int n) {
  __shared__ float s[64];
  float v = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64)
    v += in[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = 32; d; d /= 2) {
    if (threadIdx.x < d)
      s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    parts[blockIdx.x] = s[0];
  cg::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (int b = 0; b < gridDim.x; ++b)
      *out += parts[b];
}

// Each block reads what its neighbour wrote in the round before.
__global__ void rounds(int *a, int *b, int number) {
  cg::grid_group grid = cg::this_grid();
  const int next = (blockIdx.x + 1) % gridDim.x;
  for (int r = 0; r < number; ++r) {
    if (threadIdx.x == 0)
      (r % 2 ? a : b)[blockIdx.x] = (r % 2 ? b : a)[next] + 1;
    grid.sync();
  }
}

int main() {
  int n = 1000, number = 3;
  float *in, *parts, *out;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMalloc(&parts, 8 * sizeof(float));
  cudaMallocManaged(&out, sizeof(float));
  *out = 0;
  for (int i = 0; i < n; ++i)
    in[i] = 1;
  void *arguments[] = {&in, &parts, &out, &n};
  if (cudaLaunchCooperativeKernel((void *)sum, 8, 64, arguments, 0, nullptr) || cudaDeviceSynchronize())
    return 1;
  std::printf("sum %g\n", *out);
  int *a, *b;
  cudaMallocManaged(&a, 8 * sizeof(int));
  cudaMallocManaged(&b, 8 * sizeof(int));
  for (int i = 0; i < 8; ++i)
    a[i] = b[i] = 0;
  void *others[] = {&a, &b, &number};
  if (cudaLaunchCooperativeKernel((void *)rounds, 8, 64, others, 0, nullptr) || cudaDeviceSynchronize())
    return 1;
  std::printf("rounds %d\n", b[0]);
}
