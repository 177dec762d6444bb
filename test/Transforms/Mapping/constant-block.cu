// Kernels that are written for one block shape: its extents stand in them as constants.
// RUN: %plan --block=128x1 --passes='distribute-loop[best]{threads=32,rows=4}' %s | %check=BEST
// RUN: %plan --block=128x1 --passes='thread-per-iteration[sums<128>];grid-stride[sums<128>]{blocks=64,x=256}' %s | %check=ROWS
// RUN: optiml-opt --reread --emit --block=128x1 --passes='distribute-loop[best]{threads=32,rows=4};thread-per-iteration[sums<128>];distribute-loop[sums<128>]{threads=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
// Of another shape, blocks are rows that are further apart than they are wide.
// RUN: %plan --block=64x1 --passes='distribute-loop[best]{threads=32,rows=4}' %s | %check=OTHER
// OTHER: when block.x == 64
// OTHER: int row = blockIdx.x * 4 + threadIdx.y + 128 * blockIdx.y;
// REQUIRES: verify
#include <cstdio>
#define THREADS 128

// BEST: when block.x == 128  (the kernel is written for this block shape)
// BEST: int row = blockIdx.x * 4 + threadIdx.y;
// BEST: for (int j = 1 + threadIdx.x; j < n; j += 32) {
__global__ void best(const float *x, float *y, int rows, int n) {
  int row = threadIdx.x + THREADS * blockIdx.x;
  if (row >= rows)
    return;
  float m = x[row * n];
  for (int j = 1; j < n; ++j)
    m = x[row * n + j] > m ? x[row * n + j] : m;
  y[row] = m;
}

// ROWS: when block.x == 128  (the kernel is written for this block shape)
template <int T> __global__ void sums(const float *x, float *y, int rows, int n) {
  const int step = gridDim.x * T;
  for (int row = blockIdx.x * T + threadIdx.x; row < rows; row += step) {
    float s = 0;
    for (int j = 0; j < n; ++j)
      s += x[row * n + j];
    y[row] = s;
  }
}

int main() {
  const int count = 300, n = 70;
  static float x[count * n], y[2 * count];
  for (int i = 0; i < count * n; ++i)
    x[i] = float(i * 37 % 101);
  float *dx, *dy;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof y);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  best<<<3, THREADS>>>(dx, dy, count, n);
  sums<THREADS><<<2, THREADS>>>(dx, dy + count, count, n);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < 2 * count; ++i)
    sum += y[i] * (i % 7 + 1);
  printf("%g\n", sum);
}
