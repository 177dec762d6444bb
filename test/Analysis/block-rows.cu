// Kernels that ask which block a thread is in: blocks become rows, their threads columns.
// RUN: %plan --block=128x1x1 --passes='block-shape[scale]{x=64,y=2};vectorize-access[scale]{width=2}' %s | %check=SCALE
// RUN: %plan --block=128x1x1 --passes='thread-per-iteration[turns];block-shape[turns]{x=64,y=1};vectorize-access[turns]{width=4}' %s | %check=TURNS
// RUN: %opt --block=128x1x1 --passes='block-shape[sums]{x=128,y=1};vectorize-access[sums]{width=4}' %s | %check=SUMS
// RUN: %refused --passes='block-shape[scale]{x=64,y=2}' %s 2>&1 | %check=OPEN
// RUN: %refused --block=128x1x1 --passes='block-shape[meets]{x=64,y=2}' %s 2>&1 | %check=MEETS
// OPEN: axis x is used other than through the global index
// MEETS: the kernel's threads work together

// RUN: optiml-opt --reread --emit --block=128x1x1 --passes='block-shape[scale]{x=64,y=2};vectorize-access[scale]{width=2};thread-per-iteration[turns];block-shape[turns]{x=64,y=1};vectorize-access[turns]{width=4};block-shape[sums]{x=128,y=1};vectorize-access[sums]{width=4}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 24 | %check=SAME
// RUN: %verify=%t.cu %s -- 7 | %check=SAME
// SAME: the same results
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// SCALE: when grid.y * block.y == 1
// SCALE: when block.x == 128
// SCALE: when grid.x <= 65535
// SCALE: blockIdx.y
__global__ void scale(float *x, const float *s) {
  int row = blockIdx.x, col = threadIdx.x;
  x[row * 128 + col] *= s[row];
}

// TURNS-NOT: for (int c
// TURNS: float4
__global__ void turns(float *x, const float *s, int cols) {
  int row = blockIdx.x;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    x[row * cols + c] += s[row];
}

// SUMS: float4
__global__ void sums(float *x, const float *s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += s[blockIdx.x];
}

__global__ void meets(float *x, const float *s) {
  __shared__ float t[128];
  t[threadIdx.x] = s[threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 128 + threadIdx.x] = t[127 - threadIdx.x];
}

int main(int argc, char **argv) {
  const int rows = atoi(argv[1]), n = rows * 128;
  float *host = (float *)malloc(n * sizeof(float)), *x, *s;
  for (int i = 0; i < n; ++i)
    host[i] = float(i % 37) / 4.0f;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&s, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(s, host, n * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<rows, 128>>>(x, s);
  turns<<<rows, 128>>>(x, s, 100);
  sums<<<rows, 128>>>(x, s, n - 3);
  cudaMemcpy(host, x, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += host[i] * (1 + i % 11);
  printf("%g\n", sum);
  return 0;
}
