// Guards of several outputs a thread are tested once, before the loop.
// RUN: %opt --passes='block-shape[rows]{x=64};coarsen[rows]{x=2,style=strided};unswitch-guards[rows/k]' %s | %check=ROWS
// RUN: %opt --passes='block-shape[product]{x=16,y=8};coarsen[product]{x=2,y=2,style=blocked};unswitch-guards[product/k]' %s | %check=PRODUCT
// RUN: %opt --passes='unswitch-guards[mixed/k]' %s | %check=MIXED
// RUN: %refused --passes='unswitch-guards[changes/k]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unswitch-guards[loads/k]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unswitch-guards[either/k]' %s 2>&1 | %check=NONE
// RUN: %refused --passes='unswitch-guards[meets/k]' %s 2>&1 | %check=MEETS
// RUN: %refused --passes='unswitch-guards[many/k]' %s 2>&1 | %check=MANY
// RUN: optiml-opt --list-sites %s | %check=SITES
// NONE: no guard says the same in all iterations of the loop
// MEETS: threads may meet in the loop
// MANY: the loop has 40 guards; at most 32 are tested before it
// RUN: optiml-opt --reread --emit --passes='block-shape[rows]{x=64};coarsen[rows]{x=2,style=strided};unswitch-guards[rows/k];block-shape[product]{x=16,y=8};coarsen[product]{x=2,y=2,style=blocked};unswitch-guards[product/k];unswitch-guards[mixed/k]' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 201 37 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// ROWS: if (i < n && i + 64 < n) {
// ROWS-NEXT: for (int k = 0; k < m; ++k) {
// ROWS-NOT: if (
// ROWS: s[ix] += a[(i + ix * 64) * m + k] * x[k];
// ROWS: } else {
// ROWS-NEXT: for (int k = 0; k < m; ++k) {
// ROWS: if (i + ix * 64 < n) {
__global__ void rows(const float *a, const float *x, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = 0;
  for (int k = 0; k < m; ++k)
    s += a[i * m + k] * x[k];
  y[i] = s;
}

// PRODUCT: if (row < n && row + 1 < n && col < n && col + 1 < n) {
// PRODUCT-NEXT: for (int k = 0; k < m; ++k) {
// PRODUCT-NOT: if (
// PRODUCT: } else {
// PRODUCT: if (
__global__ void product(const float *a, const float *b, float *c, int n, int m) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && col < n) {
    float sum = 0;
    for (int k = 0; k < m; ++k)
      sum += a[row * m + k] * b[k * n + col];
    c[row * n + col] = sum;
  }
}

// Parts of a condition that change stay; locals under two guards do not meet.
// MIXED: if (i < n && i > 3) {
// MIXED-NEXT: for (int k = 0; k < m; ++k) {
// MIXED-NEXT: if (k != i) {
// MIXED-NEXT: float v = x[k];
// MIXED: float [[V:v[_0-9]*]] = x[k] + 1;
// MIXED-NEXT: s += [[V]];
// MIXED: } else {
__global__ void mixed(const float *x, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < m; ++k) {
    if (i < n && k != i) {
      float v = x[k];
      s -= v;
    }
    if (i > 3) {
      float v = x[k] + 1;
      s += v;
    }
  }
  if (i < n)
    y[i] = s;
}

__global__ void changes(const float *x, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, left = n;
  for (int k = 0; k < m; ++k) {
    if (i < left)
      y[i] += x[k];
    left -= k;
  }
}
__global__ void loads(const float *x, float *y, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < m; ++k)
    if (x[i] > 0)
      y[i] += x[k];
}
__global__ void either(const float *x, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < m; ++k)
    if (i < n)
      y[i] += x[k];
    else
      y[i] -= x[k];
}
__global__ void meets(const float *x, float *y, int n, int m) {
  __shared__ float s[32];
  for (int k = 0; k < m; ++k) {
    if (threadIdx.x < n)
      s[threadIdx.x] = x[k];
    __syncthreads();
    y[threadIdx.x] += s[31 - threadIdx.x];
    __syncthreads();
  }
}

__global__ void many(const float *x, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < m; ++k) {
    for (int j = 0; j < 20; ++j)
      if (i + j < n)
        y[i + j] += x[k];
    for (int j = 0; j < 20; ++j)
      if (i + j < m)
        y[i + j] -= x[k];
  }
}

// SITES-NOT: unswitch-guards
// SITES: unswitch-guards[mixed/k]
// SITES-NOT: unswitch-guards
int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 70, m = argc > 2 ? atoi(argv[2]) : 19;
  float *a, *b, *c;
  cudaMallocManaged(&a, n * m * sizeof(float));
  cudaMallocManaged(&b, n * m * sizeof(float));
  cudaMallocManaged(&c, n * n * sizeof(float));
  for (int i = 0; i < n * m; ++i) {
    a[i] = i * 13 % 17 - 8;
    b[i] = i * 7 % 19 - 9;
  }
  double sum = 0;
  auto add = [&](int count) {
    cudaDeviceSynchronize();
    for (int i = 0; i < count; ++i)
      sum += c[i] * (i % 11 + 1);
  };
  rows<<<(n + 63) / 64, 64>>>(a, b, c, n, m);
  add(n);
  product<<<dim3((n + 15) / 16, (n + 7) / 8), dim3(16, 8)>>>(a, b, c, n, m);
  add(n * n);
  mixed<<<(n + 63) / 64, 64>>>(b, c, n, m);
  add(n);
  printf("%.3f\n", sum);
}
