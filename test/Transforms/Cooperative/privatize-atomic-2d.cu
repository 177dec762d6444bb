// privatize-atomic where the block has several axes.
// RUN: %opt --passes='block-shape[norm]{x=32,y=8};coarsen[norm]{style=strided,x=1,y=4};privatize-atomic[norm:sum];block-shape[levels]{x=16,y=4};privatize-atomic[levels:bins]{bins=64};block-shape[most]{x=8,y=4,z=2};privatize-atomic[most:high]' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[norm]{x=32,y=8};coarsen[norm]{style=strided,x=1,y=4};privatize-atomic[norm:sum];block-shape[levels]{x=16,y=4};privatize-atomic[levels:bins]{bins=64};block-shape[most]{x=8,y=4,z=2};privatize-atomic[most:high]' %s > %t.cu
// RUN: timeout 600 optiml-run --coverage=15 --verify=%t.cu %s -- 131 45 | %check=SAME
// RUN: %refused --passes='block-shape[norm]{x=8,y=2};privatize-atomic[norm:sum]' %s 2>&1 | %check=WARPS
// SAME: the same results
// WARPS: a block of 8x2x1 threads holds no whole warps
#include <cstdio>
#include <cstdlib>

__global__ void norm(const float *a, double *sum, int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows)
    atomicAdd(sum, (double)a[y * columns + x] * a[y * columns + x]);
}
// CHECK: norm_optiml{{2?}}(
// CHECK: double sum_of_thread = 0.0;
// CHECK: for (int iy = 0; iy < 4; ++iy) {
// CHECK: sum_of_thread += (double)a
// CHECK: if ((threadIdx.y * 32 + threadIdx.x) % 32 == 0) {
// CHECK-NEXT: sum_of_warps[(threadIdx.y * 32 + threadIdx.x) / 32] = sum_of_thread;
// CHECK: if (threadIdx.x == 0 && threadIdx.y == 0 && sum_of_thread != 0.0) {

__global__ void levels(const float *a, unsigned *bins, int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows)
    atomicAdd(&bins[(int)(a[y * columns + x] * 40)], 1u);
}
// CHECK: levels_optiml{{2?}}(
// CHECK: for (int k = threadIdx.y * 16 + threadIdx.x; k < 64; k += 64) {

__global__ void most(const float *a, int *high, int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < columns && y < rows && z < 3)
    atomicMax(high, (int)(a[y * columns + x] * 1000) * (z + 1) % 997);
}
// CHECK: most_optiml{{2?}}(
// CHECK: high_of_warps[((threadIdx.z * 4 + threadIdx.y) * 8 + threadIdx.x) / 32] = high_of_thread;
// CHECK: if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0 && high_of_thread != -2147483647 - 1) {

int main(int argc, char **argv) {
  int rows = atoi(argv[1]), columns = atoi(argv[2]);
  float *a;
  double *sum;
  unsigned *bins;
  int *high;
  cudaMallocManaged(&a, rows * columns * sizeof(float));
  cudaMallocManaged(&sum, sizeof(double));
  cudaMallocManaged(&bins, 128 * sizeof(unsigned));
  cudaMallocManaged(&high, sizeof(int));
  for (int i = 0; i < rows * columns; ++i)
    a[i] = (i * 37 % 101) / 50.0f;
  dim3 block(16, 16), grid((columns + 15) / 16, (rows + 15) / 16), cube(8, 8, 3);
  norm<<<grid, block>>>(a, sum, rows, columns);
  levels<<<grid, block>>>(a, bins, rows, columns);
  most<<<dim3((columns + 7) / 8, (rows + 7) / 8, 1), cube>>>(a, high, rows, columns);
  cudaDeviceSynchronize();
  printf("%g %u %d\n", *sum, bins[7], *high);
}
