// split-reduction of a kernel of two axes: the entries of a small matrix over many observations.
// RUN: %plan --passes='split-reduction[gram]{x=16,y=4,parts=8}' %s | FileCheck %s
// RUN: %refused --passes='split-reduction[gram]{x=64,parts=8}' %s 2>&1 | %check=ONE
// RUN: %refused --passes='split-reduction[columns]{x=16,y=4,parts=8}' %s 2>&1 | %check=TWO
// RUN: %refused --passes='split-reduction[gram]{x=3,y=7,parts=8}' %s 2>&1 | %check=SIZE
// RUN: optiml-opt --emit --passes='split-reduction[gram]{x=16,y=4,parts=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run --coverage=off --verify=%t.cu %s -- 301 21 | %check=SAME
// RUN: %verify=%t.cu %s -- 5 37 | %check=SAME
// SAME: the same results
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 301 21 2>&1 | %check=RAN
// RAN: gram: 1 optimized, 0 original launches
// ONE: the kernel uses more than its global index along x
// TWO: the kernel does not use x and y through their global indices alone
// SIZE: a block of 21 threads is no row of whole warps
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

__global__ void gram(const double *x, double *g, int observations, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < d && j < d) {
    double s = 0;
    for (int t = 0; t < observations; ++t)
      s += x[t * d + i] * x[t * d + j];
    g[j * d + i] = s;
  }
}
// CHECK: plan gram: {{.*}}<<<(ceildiv(grid.x * block.x, 16), ceildiv(grid.y * block.y, 4), 8), (16, 4, 1), shared>>>
// CHECK-DAG: when d <= grid.x * block.x
// CHECK-DAG: when d <= grid.y * block.y
// CHECK-DAG: when 512 * ceildiv(grid.x * block.x, 16) * ceildiv(grid.y * block.y, 4) <= 268435456
// CHECK-DAG: when ceildiv(grid.y * block.y, 4) <= 65535
// CHECK: int part_begin = (int)blockIdx.z * part_size;
// CHECK: s_of_parts[((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * 64 + (threadIdx.y * 16 + threadIdx.x)] = s;
// CHECK: if (threadIdx.x == 0 && threadIdx.y == 0) {
// CHECK-NEXT: done_before = atomicAdd(&parts_done[blockIdx.y * gridDim.x + blockIdx.x], 1u);
// CHECK: s1 += s_of_parts[((part * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * 64 + (threadIdx.y * 16 + threadIdx.x)];

__global__ void columns(const double *x, double *sums, int observations, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < d) {
    double s = 0;
    for (int t = 0; t < observations; ++t)
      s += x[t * d + i];
    sums[i] = s;
  }
}

int main(int, char **argv) {
  int n = atoi(argv[1]), d = atoi(argv[2]);
  double *x, *g;
  cudaMallocManaged(&x, n * d * sizeof(double));
  cudaMallocManaged(&g, (d + 1) * d * sizeof(double));
  for (int i = 0; i < n * d; ++i)
    x[i] = i * 7 % 31 - 11;
  gram<<<dim3((d + 7) / 8, (d + 7) / 8), dim3(8, 8)>>>(x, g, n, d);
  columns<<<(d + 31) / 32, 32>>>(x, g + d * d, n, d);
  cudaDeviceSynchronize();
  printf("%g %g\n", g[0], g[d * d]);
}
