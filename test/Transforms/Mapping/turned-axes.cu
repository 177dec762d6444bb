// An axis of the blocks may go with another one of their threads: the grid is turned, and the rest is as usual.
// RUN: %plan --passes='block-shape[product]{x=16,y=16};coarsen[product]{style=blocked,x=4,y=4}' %s | FileCheck %s
// RUN: %plan --passes='distribute-loop[rows]{rows=8,threads=32}' %s | %check=ROWS
// RUN: optiml-opt --emit --passes='block-shape[product]{x=16,y=16};coarsen[product]{style=blocked,x=4,y=4};distribute-loop[rows]{rows=8,threads=32}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 37 70 | %check=SAME
// RUN: %refused --passes='block-shape[both]{x=16,y=16}' %s 2>&1 | %check=BOTH
// SAME: the same results
// BOTH: axis x is used other than through the global index
#include <cstdio>
#include <cstdlib>

// CHECK: plan product: {{.*}}<<<(ceildiv(grid.y * block.x, 64), ceildiv(grid.x * block.y, 64), 1)
// CHECK: // when {{.*}}n <= grid.y * block.x
__global__ void product(const float *a, const float *b, float *c, int m, int n) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= m || column >= n)
    return;
  float sum = 0;
  for (int k = 0; k < 24; ++k)
    sum += a[row * 24 + k] * b[k * n + column];
  c[row * n + column] = sum;
}

// One axis of threads; the blocks are along the other.
// ROWS: plan rows: {{.*}}<<<(ceildiv(grid.y * block.x, 8), 1, 1), (32, 8, 1)
__global__ void rows(const float *c, float *sums, int m, int n) {
  int row = blockIdx.y * blockDim.x + threadIdx.x;
  if (row < m) {
    float sum = 0;
    for (int j = 0; j < n; ++j)
      sum += c[row * n + j];
    sums[row] = sum;
  }
}

// Along two axes at once.
__global__ void both(float *c, int m, int n) {
  int row = blockIdx.x * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && column < n)
    c[row * n + column] = row;
}

int main(int, char **argv) {
  const int m = atoi(argv[1]), n = atoi(argv[2]);
  float *a, *b, *c, *sums;
  cudaMallocManaged(&a, m * 24 * sizeof(float));
  cudaMallocManaged(&b, n * 24 * sizeof(float));
  cudaMallocManaged(&c, m * n * sizeof(float));
  cudaMallocManaged(&sums, m * sizeof(float));
  for (int i = 0; i < m * 24; ++i)
    a[i] = i % 7;
  for (int i = 0; i < n * 24; ++i)
    b[i] = i % 5;
  product<<<dim3((m + 7) / 8, (n + 31) / 32), dim3(32, 8)>>>(a, b, c, m, n);
  rows<<<dim3(1, (m + 31) / 32), 32>>>(c, sums, m, n);
  both<<<1, dim3(8, 8)>>>(c, 3, 3);
  cudaDeviceSynchronize();
  printf("%g %g\n", c[5], sums[3]);
}
