// Barriers with reductions, static and dynamic shared memory side by side, three-dimensional grids.
// RUN: optiml-run %s | FileCheck %s
// RUN: optiml-run --check=verify %s | FileCheck %s
// RUN: optiml-run --check=off %s | FileCheck %s
#include <cstdio>
#include <cuda_runtime.h>

__global__ void blocks(int *out) {
  extern __shared__ double dynamic[];
  __shared__ int fixed[24];
  int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  fixed[t] = t;
  dynamic[23 - t] = t * 0.5;
  int odd = __syncthreads_count(t & 1), every = __syncthreads_and(t < 24), some = __syncthreads_or(t == 99);
  if (t == 7)
    out[block] = fixed[(t + 3) % 24] * 1000 + int(dynamic[0] * 2) + odd * 100000 + every * 10000000 + some;
}

int main() {
  int *out, h[8];
  cudaMalloc(&out, sizeof h);
  blocks<<<dim3(2, 2, 2), dim3(4, 3, 2), 24 * sizeof(double)>>>(out);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  for (int v : h)
    printf("%d ", v);
  printf("\n");
}
// CHECK: 11210023 11210023 11210023 11210023 11210023 11210023 11210023 11210023
