// privatize-atomic: tables with gaps, and several of them for each block.
// DEFINE: %{passes} = --passes='block-shape[gather]{x=64};privatize-atomic[gather:sums]{bins=256,copies=1};privatize-atomic[gather:most]{bins=64,copies=4};block-shape[tally]{x=16,y=4};privatize-atomic[tally:bins]{bins=64,copies=8}'
// RUN: %opt %{passes} %s | FileCheck %s
// RUN: optiml-opt --emit %{passes} %s > %t.cu
// RUN: %verify=%t.cu %s -- 500 | %check=SAME
// RUN: %refused --passes='block-shape[gather]{x=64};privatize-atomic[gather:most]{bins=4096,copies=8}' %s 2>&1 | %check=LARGE
// RUN: %refused --passes='block-shape[gather]{x=32};privatize-atomic[gather:most]{bins=64,copies=64}' %s 2>&1 | %check=FEW
// SAME: the same results
// LARGE: a table of 32768 elements is too large
// FEW: a block has fewer threads than there are tables
#include <cstdio>
#include <cstdlib>

constexpr int width = 8;

__global__ void gather(const float *x, const unsigned *group, float *sums, int *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const unsigned g = group[i] % 70;
  for (int d = 0; d < width; ++d)
    atomicAdd(&sums[g * width + d], x[i * width + d]);
  atomicMax(&most[g], i);
}
// CHECK: gather_optiml{{2?}}(
// CHECK: __shared__ int most_of_block[4][67];
// CHECK: most_of_block[copy][k1 + (k1 >> 5)] = -2147483647 - 1;
// CHECK: __shared__ float sums_of_block[265];
// CHECK: atomicAdd(&sums_of_block[bin + (bin >> 5)], x[
// CHECK: atomicMax(&most_of_block[threadIdx.x % 4][g + (g >> 5)], i);
// CHECK: if (sums_of_block[k + (k >> 5)] != 0.0f) {
// CHECK: if (most_of_block[copy][k1 + (k1 >> 5)] > total) {

__global__ void tally(const float *a, unsigned *bins, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < 7)
    atomicSub(&bins[(unsigned)(a[y * n + x] * 40) % 128], 3u);
}
// CHECK: tally_optiml{{2?}}(
// CHECK: atomicSub(&bins_of_block[(threadIdx.y * 16 + threadIdx.x) % 8][bin + (bin >> 5)], 3u);
// CHECK: total += bins_of_block[copy][k + (k >> 5)];
// CHECK: atomicAdd(&bins[k], total);

int main(int, char **argv) {
  const int n = atoi(argv[1]);
  float *x, *sums;
  unsigned *group;
  int *most;
  unsigned *bins;
  cudaMallocManaged(&x, n * width * sizeof(float));
  cudaMallocManaged(&group, n * sizeof(int));
  cudaMallocManaged(&sums, 70 * width * sizeof(float));
  cudaMallocManaged(&most, 70 * sizeof(int));
  cudaMallocManaged(&bins, 128 * sizeof(unsigned));
  for (int i = 0; i < n * width; ++i)
    x[i] = (i * 37 % 101) / 50.0f;
  for (int i = 0; i < n; ++i)
    group[i] = i * 13;
  for (int i = 0; i < 128; ++i)
    bins[i] = 0;
  for (int i = 0; i < 70 * width; ++i)
    sums[i] = most[i / width] = 0;
  gather<<<(n + 127) / 128, 128>>>(x, group, sums, most, n);
  tally<<<dim3((n + 31) / 32, 2), dim3(32, 4)>>>(x, bins, n);
  cudaDeviceSynchronize();
  printf("%g %d %u\n", sums[9], most[3], bins[7]);
}
