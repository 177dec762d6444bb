// What the checks stop, and what they say: kernel, source line, thread and block, the memory concerned.
// Blocks run at the same time: either may be the first to fail.
// RUN: optiml-run -o %t.bounds %s -- 0 | %check=FINE
// RUN: optiml-run --check=verify -o %t.verify %s -- 0 | %check=FINE
// RUN: not %t.bounds 1 2>&1 | %check=GLOBAL
// RUN: not %t.bounds 2 2>&1 | %check=SHARED
// RUN: not %t.bounds 3 2>&1 | %check=MISALIGNED
// RUN: not %t.bounds 4 2>&1 | %check=BARRIER
// RUN: not %t.bounds 5 2>&1 | %check=ASSERT
// RUN: not %t.verify 6 2>&1 | %check=RACE
// RUN: not %t.verify 7 2>&1 | %check=UNINITIALIZED
// RUN: not %t.bounds 8 2>&1 | %check=WILD
// RUN: rm %t.bounds %t.verify
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

// GLOBAL: optiml: error: {{.*}}out-of-bounds store of 4 bytes
// GLOBAL: kernel: bad
// SHARED: optiml: error: {{.*}}out-of-bounds load of 4 bytes
// SHARED: kernel: bad
// MISALIGNED: optiml: error: {{.*}}misaligned
// MISALIGNED: kernel: bad
// BARRIER: optiml: error: {{.*}}barrier
// BARRIER: kernel: bad
// ASSERT: optiml: error: {{.*}}assertion
// ASSERT: kernel: bad
// RACE: optiml: error: {{.*}}race
// RACE: kernel: bad
// UNINITIALIZED: optiml: error: {{.*}}nothing has written
// UNINITIALIZED: kernel: bad
// WILD: optiml: error: {{.*}}out-of-bounds store of 4 bytes
__global__ void bad(float *x, int n, int what) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  if (what == 1 && t == 17)
    x[n + 3] = 1; // GLOBAL: faults.cu:[[#@LINE]]:{{[0-9]+}} in bad
  // GLOBAL: thread: (17, 0, 0) of block ({{[01]}}, 0, 0)
  // GLOBAL: 12 bytes past the end of the 256-byte allocation
  if (what == 2)
    x[t] = s[t + 20]; // SHARED: faults.cu:[[#@LINE]]
  // SHARED: shared variable 's'
  if (what == 3)
    x[t] = ((float2 *)(x + 1))->x + ((float2 *)(x + 1))->y + *(double *)(x + 1); // MISALIGNED: faults.cu:[[#@LINE]]
  if (what == 4) {
    if (t < 9)
      __syncthreads(); // BARRIER: faults.cu:[[#@LINE]]
    s[t] = 1;
    __syncthreads();
  }
  assert(what != 5 || t < 30); // ASSERT: faults.cu:[[#@LINE]]
  if (what == 6)
    x[0] = t; // RACE: faults.cu:[[#@LINE]]
  __shared__ float u[32];
  if (what == 7)
    x[t] = u[t]; // UNINITIALIZED: faults.cu:[[#@LINE]]
  if (what == 8)
    x[1000 * 1000 + t] = 1; // WILD: faults.cu:[[#@LINE]]
  // WILD: past the end of the 256-byte allocation
}

int main(int, char **argv) {
  float *x, *neighbour;
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMalloc(&neighbour, 2000 * 1000 * sizeof(float)); // that a wild index of x does not reach
  bad<<<dim3(2), 32>>>(x, 64, atoi(argv[1]));
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); // FINE: no error
}
