// Threads and blocks that wait for each other by polling memory make progress.
// RUN: optiml-run --time=60 %s | FileCheck %s
#include <cstdio>
#include <cuda_runtime.h>

__device__ int lock = 0, counter = 0;
__device__ volatile int turn = 0;

__global__ void locked() { // every thread, one after the other
  bool done = false;
  while (!done)
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence();
      counter = counter + 1;
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
}

__global__ void chain(int *out) { // each block waits for the one before it
  if (threadIdx.x == 0) {
    while (turn != blockIdx.x)
      ;
    out[blockIdx.x] = blockIdx.x == 0 ? 1 : 2 * out[blockIdx.x - 1];
    __threadfence();
    turn = blockIdx.x + 1;
  }
}

int main() {
  int count, *out, h[10];
  locked<<<4, 64>>>();
  cudaMemcpyFromSymbol(&count, counter, sizeof count);
  cudaMalloc(&out, sizeof h);
  chain<<<10, 32>>>(out);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d %d\n", count, h[9]);
}
// CHECK: 256 512
