// Where data tell the indices, the dispatcher asks the driver whether arrays lie in different allocations: in one
// launch they do, in the other they share one.
// RUN: optiml-opt --reread --emit --passes='promote-accumulator[gathered/k:out];qualify-pointers[gathered]' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %verify=%t.cu %s -- 300 | %check=SAME
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu -- 300 2>&1 | %check=RAN
// What was emitted can be emitted again.
// RUN: optiml-opt --reread --emit --passes='unroll[gathered/k]{factor=4}' %t.cu > %t.2.cu
// RUN: %nvcc -arch=sm_90 -c %t.2.cu -o %t.2.o
// RUN: optiml-opt --emit --passes='promote-accumulator[gathered/k:out]' %t.cu > %t.3.cu
// RUN: %nvcc -arch=sm_90 -c %t.3.cu -o %t.3.o
// RUN: optiml-run %t.3.cu -- 300
// SAME: the same results
// RAN: gathered: 1 optimized, 1 original launch
// REQUIRES: optiml-run
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// CHECK: static inline bool optimlApart(const void *p, const void *q) {
// CHECK: optimlApart((const void *)table, (const void *)out)
__global__ void gathered(const float *table, const int *index, float *out, int n, int times) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < times; ++k)
      out[i] += table[index[i * times + k]];
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 300;
  const int times = 5;
  float *both, *table, *host = (float *)malloc(2 * n * sizeof(float));
  int *index, *places = (int *)malloc(n * times * sizeof(int));
  for (int i = 0; i < 2 * n; ++i)
    host[i] = i % 17 * 0.25f;
  for (int i = 0; i < n * times; ++i)
    places[i] = i * 7 % n;
  cudaMalloc(&both, 2 * n * sizeof(float));
  cudaMalloc(&table, n * sizeof(float));
  cudaMalloc(&index, n * times * sizeof(int));
  cudaMemcpy(both, host, 2 * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(table, host, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(index, places, n * times * sizeof(int), cudaMemcpyHostToDevice);
  gathered<<<(n + 127) / 128, 128>>>(table, index, both, n, times);
  gathered<<<(n + 127) / 128, 128>>>(both, index, both + n, n, times);
  cudaMemcpy(host, both, 2 * n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < 2 * n; ++i)
    sum += host[i];
  printf("%.4e\n", sum);
  return cudaGetLastError() != cudaSuccess;
}
