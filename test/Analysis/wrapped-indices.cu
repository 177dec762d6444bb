// What wraps around on the way to an unsigned index is back in the end; and where a quotient of a block's index leads
// is bounded by the quotient, not by the index.
// RUN: %plan --passes='split-border[filter/k]{style=guard};block-shape[filter]{x=64};stage-window[filter:x+w]' %s | FileCheck %s
// RUN: %plan --passes='qualify-pointers[planes]' %s | %check=PLANES
// RUN: optiml-opt --emit --passes='split-border[filter/k]{style=guard};block-shape[filter]{x=64};stage-window[filter:x+w]' %s > %t.cu
// RUN: %verify=%t.cu %s -- 300 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>

// CHECK: __shared__ {{.*}}float w_window[9];
__global__ void filter(const float *x, const float *w, float *y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int first = max((int)i - 4, 0), last = min((int)i + 4, (int)n - 1);
  float sum = 0;
  for (int k = first; k <= last; ++k)
    sum += x[k] * w[k - i + 4];
  y[i] = sum;
}

// PLANES: // when disjoint(x, 4 * ((grid.z - 1) / max(planes, 1) * size + size), y,
__global__ void planes(const float *x, float *y, int planes, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size)
    y[blockIdx.z * size + i] = x[(blockIdx.z / planes) * size + i];
}

int main(int, char **argv) {
  const unsigned n = atoi(argv[1]);
  float *x, *w, *y;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMallocManaged(&w, 9 * sizeof(float));
  cudaMallocManaged(&y, 6 * n * sizeof(float));
  for (unsigned i = 0; i < n; ++i)
    x[i] = i % 11;
  for (int i = 0; i < 9; ++i)
    w[i] = i;
  filter<<<(n + 127) / 128, 128>>>(x, w, y, n);
  planes<<<dim3((n + 127) / 128, 1, 6), 128>>>(x, y, 6, n);
  cudaDeviceSynchronize();
  printf("%g\n", y[5]);
}
