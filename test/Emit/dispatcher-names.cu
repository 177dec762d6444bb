// Kernels, parameters and types with the names that a dispatcher would like for itself.
// RUN: optiml-opt --emit --passes='block-shape[shared]{x=64,y=1};block-shape[path]{x=64,y=1}' %s > %t.cu
// RUN: %verify=%t.cu %s | FileCheck %s
// RUN: %refused --emit --passes='block-shape[ambiguous]{x=64,y=1}' %s 2>&1 | %check=AMBIGUOUS
// AMBIGUOUS: its parameter 'shared' has the name of a part of the launch
// CHECK: the same results in {{[0-9]+}} runs

struct grid {
  int cells;
};
__global__ void shared(int *path, int *room, grid cells, const grid *stream) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells.cells)
    path[i] = room[i] + stream->cells;
}
__global__ void path(int *block, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    block[i] += i;
}

__global__ void ambiguous(int *a, int shared) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < shared)
    a[i] += i;
}

#include <cstdio>
int main() {
  const int n = 100;
  int *a, h[n];
  grid *g, one = {n};
  cudaMalloc(&a, n * sizeof(int));
  cudaMalloc(&g, sizeof one);
  cudaMemset(a, 0, n * sizeof(int));
  cudaMemcpy(g, &one, sizeof one, cudaMemcpyHostToDevice);
  shared<<<4, 32>>>(a, a, one, g);
  path<<<4, 32>>>(a, n);
  cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d %d\n", h[0], h[n - 1]);
}
