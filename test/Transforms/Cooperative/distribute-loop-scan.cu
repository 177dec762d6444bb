// distribute-loop where the loop is a scan: what a sum is in every iteration.
// RUN: %opt --passes='distribute-loop[cumsum]{threads=32,rows=8};distribute-loop[offsets]{threads=256};distribute-loop[drawdown]{threads=8,rows=32}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='distribute-loop[cumsum]{threads=32,rows=8};distribute-loop[offsets]{threads=256};distribute-loop[drawdown]{threads=8,rows=32}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 37 301 | %check=SAME
// RUN: optiml-opt --emit --passes='distribute-loop[cumsum]{threads=128};distribute-loop[offsets]{threads=32,rows=4};distribute-loop[drawdown]{threads=64}' %s > %t2.cu
// RUN: %verify=%t2.cu %s -- 5 1000 | %check=SAME
// RUN: %nvcc -arch=sm_90 -c %t2.cu -o %t.o
// RUN: %opt --passes='distribute-loop[drawdown]{threads=32,rows=4,items=4}' %s | %check=ITEMS
// RUN: optiml-opt --emit --passes='distribute-loop[cumsum]{threads=32,rows=8,items=4};distribute-loop[offsets]{threads=256,items=8};distribute-loop[drawdown]{threads=8,rows=32,items=3}' %s > %t3.cu
// RUN: %verify=%t3.cu %s -- 37 301 | %check=SAME
// RUN: optiml-opt --emit --passes='distribute-loop[cumsum]{threads=128,items=2};distribute-loop[offsets]{threads=64,items=4};distribute-loop[drawdown]{threads=64,items=16}' %s > %t4.cu
// RUN: %verify=%t4.cu %s -- 5 1000 | %check=SAME
// RUN: %nvcc -arch=sm_90 -c %t4.cu -o %t.o
// RUN: %refused --passes='distribute-loop[lengths]{threads=32,rows=8,items=4}' %s 2>&1 | %check=LENGTHS
// LENGTHS: no loop follows a sum, of which a thread could take several elements
// RUN: %refused --fp=strict --passes='distribute-loop[cumsum]{threads=256}' %s 2>&1 | %check=STRICT
// RUN: %refused --passes='distribute-loop[compact]{threads=256}' %s 2>&1 | %check=COMPACT
// RUN: %refused --passes='distribute-loop[recursive]{threads=256}' %s 2>&1 | %check=RECURSIVE
// SAME: the same results
// STRICT: what the loop computes in 's' is no sum
// COMPACT: none of its loops can be shared out
// RECURSIVE: none of its loops can be shared out
#include <cstdio>
#include <cstdlib>

// A row a thread.
__global__ void cumsum(const float *x, float *y, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float s = 0;
  for (int c = 0; c < columns; ++c) {
    s += x[r * columns + c];
    y[r * columns + c] = s;
  }
}
// CHECK: cumsum_optiml
// CHECK: for (long long c_of_group = 0ll; c_of_group < columns; c_of_group += 32) {
// CHECK: bool active = c_of_thread < columns;
// CHECK: const float s_term = x[r * columns + c];
// CHECK: const float s_of_other = __shfl_up_sync(0xffffffff, s_of_lanes, offset1);
// CHECK: s += s_of_all;
// CHECK: if (active) {
// CHECK: s_after += s_term;
// CHECK: y[r * columns + c] = s_after;

// In place, from 0, by one thread alone.
__global__ void offsets(unsigned *counts, int n, unsigned *total) {
  unsigned s = 0;
  for (int i = 0; i < n; ++i) {
    unsigned v = counts[i];
    counts[i] = s;
    s += v;
  }
  *total = s;
}
// CHECK: offsets_optiml
// CHECK: __shared__ unsigned int s_of_warps[8];
// CHECK: unsigned int v = counts[i];
// CHECK: __syncthreads();
// CHECK: unsigned int s_before = s;
// CHECK: counts[i] = s_before;
// CHECK: __syncthreads();

// The highest so far, and the largest fall from it.
__global__ void drawdown(const float *price, float *high, float *worst, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float top = price[r * columns], fall = 0;
    for (int c = 0; c < columns; ++c) {
      float now = price[r * columns + c];
      top = fmaxf(top, now);
      high[r * columns + c] = top;
      fall = fmaxf(fall, top - now);
    }
    worst[r] = fall;
  }
}
// CHECK: drawdown_optiml
// CHECK: top_before = fmaxf(top_before, top_of_left);
// CHECK: fall = fmaxf(fall, top_after - now);

// ITEMS: drawdown_optiml
// ITEMS: for (long long c_of_group = 0ll; c_of_group < columns; c_of_group += 128) {
// ITEMS: float top_terms[4];
// ITEMS: float now_of_items[4];
// ITEMS: now_of_items[item] = now;
// ITEMS: top_of_lanes = fmaxf(top_of_lanes, top_terms[item]);
// ITEMS: if (c_of_thread1 < columns) {
// ITEMS: float now1 = now_of_items[item];
// ITEMS: high[r * columns + c1] = top_after1;
// ITEMS: top_before = fmaxf(top_before, top_terms[item]);

// Only its total is of interest.
__global__ void lengths(const float *x, float *y, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float s = 0;
  for (int c = 0; c < columns; ++c)
    s += x[r * columns + c] * x[r * columns + c];
  y[r] = s;
}

// Where an element goes depends on the sum.
__global__ void compact(const int *x, int *y, int n, int *count) {
  int k = 0;
  for (int i = 0; i < n; ++i)
    if (x[i] > 0) {
      y[k] = x[i];
      k += 1;
    }
  *count = k;
}
// What is added depends on it.
__global__ void recursive(const float *x, float *y, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) {
    float d = x[i] - s;
    s += 0.5f * d;
    y[i] = s;
  }
}

int main(int argc, char **argv) {
  int rows = atoi(argv[1]), columns = atoi(argv[2]), n = rows * columns;
  float *x, *y, *high, *worst;
  unsigned *counts, *total;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  cudaMallocManaged(&high, n * sizeof(float));
  cudaMallocManaged(&worst, rows * sizeof(float));
  cudaMallocManaged(&counts, n * sizeof(unsigned));
  cudaMallocManaged(&total, sizeof(unsigned));
  for (int i = 0; i < n; ++i) {
    x[i] = i * 37 % 101 - 50;
    counts[i] = i * 31 % 17;
  }
  int blocks = (rows + 63) / 64;
  cumsum<<<blocks, 64>>>(x, y, rows, columns);
  offsets<<<1, 1>>>(counts, n, total);
  drawdown<<<blocks, 64>>>(x, high, worst, rows, columns);
  cudaDeviceSynchronize();
  printf("%g %g %u\n", y[n - 1], worst[rows - 1], *total);
}
