// Kernels, parameters and types with the names that a dispatcher would like for itself.
// RUN: optiml-opt --emit --passes='block-shape[shared]{x=64,y=1};block-shape[path]{x=64,y=1};block-shape[ambiguous]{x=64,y=1};block-shape[over_grid]{x=64,y=1};vectorize-access[over_grid]{width=4}' %s > %t.cu
// RUN: FileCheck %s --check-prefix=EMITTED < %t.cu
// RUN: %verify=%t.cu %s | FileCheck %s
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RAN-DAG: ambiguous: 1 optimized, 0 original launches
// RAN-DAG: over_grid: 1 optimized, 0 original launches
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

// Parameters whose names mean something else in conditions have others in the new kernels.
// EMITTED: __launch_bounds__(64) ambiguous_{{[a-z0-9]*}}(int *a, int shared1)
__global__ void ambiguous(int *a, int shared) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < shared)
    a[i] += i;
}

struct Grid {
  int x, y;
  float spacing;
};
// EMITTED: __launch_bounds__(64) over_grid_{{[a-z0-9]*}}(float *field, Grid grid1)
// EMITTED: (long long)grid1.x * (long long)grid1.y <= (long long)grid.x * (long long)block.x
__global__ void over_grid(float *field, Grid grid) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= grid.x * grid.y)
    return;
  field[i] = field[i] * 0.5f + grid.spacing;
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
  ambiguous<<<4, 32>>>(a, n);
  cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d %d\n", h[0], h[n - 1]);
  float *field, f[61];
  cudaMalloc(&field, sizeof f);
  cudaMemset(field, 0, sizeof f);
  over_grid<<<2, 32>>>(field, {61, 1, 1.5f});
  cudaMemcpy(f, field, sizeof f, cudaMemcpyDeviceToHost);
  printf("%g %g\n", f[0], f[60]);
}
