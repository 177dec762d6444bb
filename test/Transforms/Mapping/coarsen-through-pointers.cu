// coarsen: what a thread changes through pointers to its own arrays is its own.
// RUN: %opt --passes='block-shape[pick]{x=128};coarsen[pick]{x=2}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[pick]{x=128};coarsen[pick]{x=2}' %s > %t.cu
// RUN: %verify=%t.cu %s -- 1000 5 | %check=SAME
// SAME: the same results
// CHECK: float a[2][4];
// CHECK: float b[2][4];
// CHECK: (k > 2 ? a[ix] : b[ix])[k & 3] =
// CHECK: cur[ix] = a[ix];
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>

__global__ void pick(const float *x, float *y, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[4], b[4], c[4], d = 0;
  for (int j = 0; j < 4; ++j) {
    a[j] = j;
    b[j] = -j;
    c[j] = 1;
  }
  (k > 2 ? a : b)[k & 3] = i < n ? x[i] : 0;
  float *cur = a, *next = b;
  for (int r = 0; r < k; ++r) {
    next[r & 3] = cur[(r + 1) & 3] + (i < n ? x[i] : 0);
    float *t = cur;
    cur = next;
    next = t;
  }
  float *which = k > 3 ? &d : c;
  *which += i < n ? 2 * x[i] : 0;
  if (i < n)
    y[i] = a[k & 3] + b[(k + 1) & 3] + c[k & 3] + d;
}

int main(int, char **argv) {
  int n = atoi(argv[1]), k = atoi(argv[2]);
  float *x, *y;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&y, n * sizeof(float));
  for (int i = 0; i < n; ++i)
    x[i] = i % 17;
  pick<<<(n + 255) / 256, 256>>>(x, y, n, k);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += y[i] * (i % 7);
  printf("%g\n", sum);
}
