// split-border: what it makes, and what it refuses.
// RUN: %opt --passes='split-border[clipped/j]' %s | %check=CLIPPED
// RUN: %opt --passes='split-border[chosen/j]' %s | %check=CHOSEN
// RUN: %opt --passes='split-border[guarded/d]' %s | %check=GUARDED
// RUN: optiml-opt --emit --passes='split-border[clipped/j];split-border[chosen/j];split-border[guarded/d]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %if verify %{ optiml-run --coverage=5 --verify=%t.cu %s -- 100 | %check=SAME %}
// RUN: %refused --passes='split-border[open/j]' %s 2>&1 | %check=OPEN
// RUN: %refused --passes='split-border[unsigned_bounds/j]' %s 2>&1 | %check=OPEN
// RUN: %refused --passes='split-border[data/d]' %s 2>&1 | %check=OPEN
// SAME: the same results
// OPEN: nothing clips a constant number of iterations
#include <algorithm>
#include <cstdio>
#include <cstdlib>

// CLIPPED: if (i - 3 >= 0 && i + 3 <= n - 1) {
// CLIPPED-NEXT: #pragma unroll
// CLIPPED-NEXT: for (int j1 = 0; j1 < 6; ++j1) {
// CLIPPED-NEXT: s += x[i - 3 + j1];
// CLIPPED: } else {
// CLIPPED-NEXT: for (int j = max(0, i - 3); j < min(n - 1, i + 3); j++) {
__global__ void clipped(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int j = max(0, i - 3); j < min(n - 1, i + 3); j++)
    s += x[j];
  y[i] = s;
}

// CHOSEN: if (i - 2 >= 0 && i + 3 <= n) {
// CHOSEN: for (int j1 = 0; j1 < 5; ++j1) {
__global__ void chosen(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int first = i < 2 ? 0 : i - 2, end = i + 3 > n ? n : i + 3;
    int s = 0;
    for (int j = first; j < end; ++j)
      s += x[j] * (j - i);
    y[i] = s;
  }
}

// GUARDED: if (i + -2 >= 0 && i + 2 < n) {
// GUARDED-NEXT: #pragma unroll
// GUARDED-NEXT: for (int d = -2; d <= 2; ++d) {
// GUARDED-NEXT: const int at1 = i + d;
// GUARDED-NEXT: s += x[at1];
__global__ void guarded(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int d = -2; d <= 2; ++d) {
      const int at = i + d;
      if (at >= 0 && at < n)
        s += x[at];
    }
    y[i] = s;
  }
}

__global__ void open(const float *x, float *y, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = max(0, i - r); j < min(n, i + 3); ++j)
    s += x[j];
  if (i < n)
    y[i] = s;
}

__global__ void unsigned_bounds(const float *x, float *y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (unsigned j = i < 3 ? 0 : i - 3; j < min(n, i + 3); ++j)
    s += x[j];
  if (i < n)
    y[i] = s;
}

__global__ void data(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  for (int d = 0; d < 5; ++d)
    if (x[d] > s)
      s += d;
  if (i < n)
    y[i] = s;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  if (n < 1)
    return 2;
  float *x, *y, *z;
  int *a, *b;
  cudaMallocManaged(&x, n * 4);
  cudaMallocManaged(&y, n * 4);
  cudaMallocManaged(&z, n * 4);
  cudaMallocManaged(&a, n * 4);
  cudaMallocManaged(&b, n * 4);
  for (int i = 0; i < n; ++i) {
    x[i] = i % 7;
    a[i] = i % 5 - 2;
  }
  clipped<<<(n + 63) / 64, 64>>>(x, y, n);
  chosen<<<(n + 63) / 64, 64>>>(a, b, n);
  guarded<<<(n + 63) / 64, 64>>>(x, z, n);
  cudaDeviceSynchronize();
  printf("%g %d %g\n", y[n / 2], b[n / 2], z[n / 2]);
  return 0;
}
