// split-reduction where a block's threads share a part: rows that several blocks read along.
// RUN: %plan --block=64x1x1 --grid=5x1x1 --passes='split-reduction[rows]{threads=128,parts=4}' %s | FileCheck %s
// RUN: %opt --block=64x1x1 --grid=5x1x1 --passes='thread-per-block[greatest];split-reduction[greatest]{threads=256,parts=8}' %s | %check=TREE
// RUN: optiml-opt --block=64x1x1 --grid=5x1x1 --reread --emit --passes='split-reduction[rows]{threads=128,parts=4};thread-per-block[greatest];split-reduction[greatest]{threads=256,parts=8};split-reduction[either]{threads=64,parts=3}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run --check=verify %t.cu 2>&1 | %check=RAN
// RUN: %verify=%t.cu %s | %check=SAME
// RUN: %refused --passes='split-reduction[rows]{threads=48,parts=4}' %s 2>&1 | %check=SIZE
// RUN: %refused --passes='split-reduction[rows]{threads=64,x=64,parts=4}' %s 2>&1 | %check=AXES
// RAN-NOT: 0 optimized
// SAME: the same results
// SIZE: a block of 48 threads is no row of whole warps
// AXES: threads that share a loop have one axis
#include <cstdio>

__global__ void rows(const float *a, float *mean, double *square, int n, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n)
    return;
  float s = 0;
  double q = square[row];
  for (int c = 0; c < columns; ++c) {
    s += a[row * columns + c];
    q += (double)a[row * columns + c] * a[row * columns + c];
  }
  mean[row] = s / columns;
  square[row] = q;
}
// CHECK: plan rows: {{.*}}<<<(grid.x * block.x, 4, 1), (128, 1, 1), shared>>>
// CHECK-DAG: when columns <= 2147483515  (the ranges' ends do not overflow)
// CHECK: int row = blockIdx.x;
// CHECK: q = 0
// CHECK: for (int c = part_begin + (int)threadIdx.x; c < part_end; c += 128) {
// CHECK: if (threadIdx.x == 0) {
// CHECK-NEXT: q_of_parts[blockIdx.y * gridDim.x + blockIdx.x] = q;
// CHECK-NEXT: s_of_parts[blockIdx.y * gridDim.x + blockIdx.x] = s;
// CHECK: if (done_before == 3 && threadIdx.x == 0) {
// CHECK: q1 += q_of_parts[part * gridDim.x + blockIdx.x];

// A block a row already.
__global__ void greatest(const int *a, int *out, size_t columns) {
  __shared__ int best[64];
  int mine = -1000000;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x)
    mine = max(mine, a[blockIdx.x * columns + c]);
  best[threadIdx.x] = mine;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s)
      best[threadIdx.x] = max(best[threadIdx.x], best[threadIdx.x + s]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = best[0];
}
// TREE: for (size_t {{.*}} < part_end; {{.*}} += 256) {
// TREE: mine_of_warps
// TREE: if (done_before == 7 && threadIdx.x == 0) {

// Which loop runs is a row's own.
__global__ void either(const int *a, const int *kind, int *out, int n, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    int r = 5;
    if (kind[row] > 0) {
      for (int c = 0; c < columns; ++c)
        r += a[row * columns + c];
    } else {
      for (int c = 0; c < columns; ++c)
        if (a[row * columns + c] < r)
          r = a[row * columns + c];
    }
    out[row] = r;
  }
}

int main() {
  const int n = 70, columns = 133;
  float *a, *mean;
  double *square;
  int *b, *kind, *out;
  cudaMallocManaged(&a, n * columns * sizeof(float));
  cudaMallocManaged(&b, n * columns * sizeof(int));
  cudaMallocManaged(&mean, n * sizeof(float));
  cudaMallocManaged(&square, n * sizeof(double));
  cudaMallocManaged(&kind, n * sizeof(int));
  cudaMallocManaged(&out, 2 * n * sizeof(int));
  for (int i = 0; i < n * columns; ++i) {
    a[i] = i * 37 % 64 / 64.0f;
    b[i] = i * 41 % 1009 - 300;
  }
  for (int i = 0; i < n; ++i) {
    kind[i] = i % 3 - 1;
    square[i] = i;
  }
  rows<<<2, 64>>>(a, mean, square, n, columns);
  greatest<<<5, 64>>>(b, out, columns);
  either<<<2, 64>>>(b, kind, out + n, n, columns);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; ++i)
    printf("%g %g %d %d\n", mean[i], square[i], i < 5 ? out[i] : 0, out[n + i]);
}
