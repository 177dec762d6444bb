// split-reduction: what it makes, its conditions, and what it refuses.
// RUN: %plan --passes='split-reduction[columns]{x=64,parts=4}' %s | FileCheck %s
// RUN: %opt --passes='split-reduction[branches]{x=32,parts=32}' %s | %check=BRANCHES
// RUN: %opt --passes='split-reduction[both]{x=32,parts=8}' %s | %check=BOTH
// RUN: %opt --passes='split-reduction[columns]{x=64,parts=4};unroll[columns/i]{factor=4}' %s | %check=UNROLL
// RUN: optiml-opt --reread --emit --passes='split-reduction[columns]{x=64,parts=4};split-reduction[branches]{x=32,parts=32};split-reduction[both]{x=32,parts=8}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s | %check=SAME
// SAME: the same results
// RUN: %refused --passes='split-reduction[variance]' %s 2>&1 | %check=VARIANCE
// RUN: %refused --passes='split-reduction[extreme]' %s 2>&1 | %check=EXTREME
// RUN: %refused --passes='split-reduction[between]' %s 2>&1 | %check=BETWEEN
// RUN: %refused --passes='split-reduction[goesOn]' %s 2>&1 | %check=ON
// RUN: %refused --passes='split-reduction[sparse]' %s 2>&1 | %check=SPARSE
// RUN: %refused --passes='split-reduction[writes]' %s 2>&1 | %check=WRITES
// RUN: %refused --passes='split-reduction[bounded]' %s 2>&1 | %check=BOUNDED
// RUN: %refused --passes='split-reduction[columns]{x=48}' %s 2>&1 | %check=SIZE
// RUN: %refused --passes='split-reduction[columns]{x=64,parts=1}' %s 2>&1 | %check=PARTS
// SIZE: a block of 48 threads is no row of whole warps
// PARTS: the number of parts must be 2 to 4096
// REQUIRES: optiml-run
#include <cstdio>

__global__ void columns(const float *a, float *y, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col < cols) {
    float s = 0;
    for (int i = 0; i < rows; ++i)
      s += a[i * cols + col];
    y[col] = s / rows;
  }
}
// CHECK: plan columns: {{.*}}<<<(ceildiv(grid.x * block.x, 64), 4, 1), (64, 1, 1), shared>>>
// CHECK-DAG: when cols <= grid.x * block.x
// CHECK-DAG: when rows <= 2147483643  (the ranges' ends do not overflow)
// CHECK-DAG: when 256 * ceildiv(grid.x * block.x, 64) <= 268435456
// CHECK: volatile float *s_of_parts
// CHECK-SAME: unsigned int *parts_done
// CHECK: float s = 0;
// The part's sum starts at nothing already.
// CHECK-NEXT: int part_size = (rows + 3) / 4;
// CHECK-NEXT: int part_begin = (int)blockIdx.y * part_size;
// CHECK-NEXT: int part_end = part_begin + part_size < rows ? part_begin + part_size : rows;
// CHECK-NEXT: for (int i = part_begin; i < part_end; ++i) {
// CHECK-NEXT: s += a[i * cols + col];
// CHECK-NEXT: }
// CHECK-NEXT: s_of_parts[(blockIdx.y * gridDim.x + blockIdx.x) * 64 + threadIdx.x] = s;
// CHECK-NEXT: }
// CHECK-NEXT: __threadfence();
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: __shared__ unsigned int done_before;
// CHECK-NEXT: if (threadIdx.x == 0) {
// CHECK-NEXT: done_before = atomicAdd(&parts_done[blockIdx.x], 1u);
// CHECK-NEXT: }
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: if (done_before == 3) {
// CHECK-NEXT: __threadfence();
// CHECK-NEXT: if (col < cols) {
// CHECK-NEXT: float s1 = 0;
// CHECK-NEXT: for (unsigned int part = 0; part < 4; ++part) {
// CHECK-NEXT: s1 += s_of_parts[(part * gridDim.x + blockIdx.x) * 64 + threadIdx.x];
// CHECK-NEXT: }
// CHECK-NEXT: y[col] = s1 / rows;
// UNROLL: for (; i < part_end && (unsigned int)part_end - (unsigned int)i >= 4; i += 4) {

// Loops in branches share memory: a thread runs one of them. What only they need is not computed again.
__global__ void branches(const float *a, const float *b, double *y, unsigned n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  int at = i / 3;
  double sum = 1.0;
  if (i % 3 < 2) {
    for (unsigned k = 0; k < n; ++k)
      sum += (double)a[k * count + at] * a[k * count + i];
    sum *= 2;
  } else {
    for (unsigned k = 0; k < n; ++k)
      sum -= b[k];
  }
  y[i] = sum;
}
// BRANCHES: volatile double *sum_of_parts,
// BRANCHES-NEXT: unsigned int *parts_done)
// BRANCHES: sum = 0.0;
// BRANCHES: unsigned int part_begin = blockIdx.y * part_size;
// BRANCHES-NOT: sum *= 2
// BRANCHES: sum = 0.0;
// BRANCHES: __threadfence();
// BRANCHES-NOT: int at
// BRANCHES: double sum1 = 1.0;
// BRANCHES: sum1 *= 2;
// BRANCHES: y[i] = sum1;

// Two loops one after the other, and a maximum, which starts in every part where it started.
__global__ void both(const int *a, int *low, int *high, int *odd, long long n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    int most = a[i], least = 1000000, ones = 0;
    for (long long k = 1; k < n; ++k) {
      int v = a[k * count + i];
      most = max(most, v);
      if (v < least)
        least = v;
    }
    for (long long k = 0; k < n; ++k)
      ones += a[k * count + i] & 1;
    high[i] = most;
    low[i] = least;
    odd[i] = ones;
  }
}
// BOTH: long long part_size = (n - 1 + 7) / 8;
// BOTH: long long part_begin = (long long)blockIdx.y * part_size + 1;
// BOTH: ones_of_parts[{{.*}}] = ones;
// BOTH: int most1 = a[i];
// BOTH: int [[OTHER:other[0-9]*]] = least_of_parts[{{.*}}];
// BOTH-NEXT: if ([[OTHER]] < least1) {

__global__ void variance(const float *a, float *y, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    float mean = 0, s = 0;
    for (int k = 0; k < n; ++k)
      mean += a[k * count + i];
    mean /= n;
    for (int k = 0; k < n; ++k)
      s += (a[k * count + i] - mean) * (a[k * count + i] - mean);
    y[i] = s;
  }
}
// VARIANCE: needs the result of a loop, 'mean', before another loop

__global__ void extreme(const float *a, float *y, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    float m = 0;
    for (int k = 0; k < n; ++k)
      m += a[k * count + i];
    for (int k = 0; k < n; ++k)
      m = fmaxf(m, a[k * count + i]);
    y[i] = m;
  }
}
// EXTREME: needs the result of a loop, 'm', before another loop

__global__ void between(const float *a, float *y, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    float s = 0;
    y[i] = 1;
    for (int k = 0; k < n; ++k)
      s += a[k * count + i];
    y[i] += s;
  }
}
// BETWEEN: writes memory, or may, before a loop

__global__ void goesOn(const float *a, float *y, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0, t = 0, scale;
  if (i % 2) {
    for (int k = 0; k < n; ++k)
      s += a[k * count + i];
    scale = 2;
  } else {
    scale = 3;
  }
  for (int k = 0; k < n; ++k)
    t += scale * a[k * count + i];
  y[i] = s + t;
}
// ON: a branch goes on behind its loop, before another loop

__global__ void sparse(const int *start, const float *a, float *y, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    float s = 0;
    for (int k = start[i]; k < start[i + 1]; ++k)
      s += a[k];
    y[i] = s;
  }
}
// SPARSE: the loop's bounds are not known at the launch

__global__ void writes(const float *a, float *y, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    for (int k = 0; k < n; ++k)
      y[k * count + i] = a[k * count + i];
}
// WRITES: the loop writes 'y'

__global__ void bounded(const float *a, int *y, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    int found = 0;
    for (int k = 0; k < n; ++k) {
      if (a[k * count + i] > 1)
        break;
      ++found;
    }
    y[i] = found;
  }
}
// BOUNDED: the loop may be left early

int main() {
  const int rows = 77, cols = 70;
  static float a[rows * cols], y[cols];
  static int n[rows * cols], results[3 * cols];
  static double z[cols];
  unsigned state = 1;
  for (int i = 0; i < rows * cols; ++i) {
    state = state * 1664525u + 1013904223u;
    a[i] = (float)(state >> 20) / 4096.0f;
    n[i] = (int)(state >> 16) - 30000;
  }
  float *da, *dy;
  int *dn, *dr;
  double *dz;
  cudaMalloc(&da, sizeof a);
  cudaMalloc(&dy, sizeof y);
  cudaMalloc(&dn, sizeof n);
  cudaMalloc(&dr, sizeof results);
  cudaMalloc(&dz, sizeof z);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  cudaMemcpy(dn, n, sizeof n, cudaMemcpyHostToDevice);
  columns<<<3, 32>>>(da, dy, rows, cols);
  branches<<<3, 32>>>(da, da, dz, rows, cols);
  both<<<3, 32>>>(dn, dr, dr + cols, dr + 2 * cols, rows, cols);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  cudaMemcpy(z, dz, sizeof z, cudaMemcpyDeviceToHost);
  cudaMemcpy(results, dr, sizeof results, cudaMemcpyDeviceToHost);
  for (int i = 0; i < cols; ++i)
    printf("%g %g %d %d %d\n", y[i], z[i], results[i], results[cols + i], results[2 * cols + i]);
}
