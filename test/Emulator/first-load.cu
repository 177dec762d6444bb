// What a loop around atomicCAS expects first is read without an order, and that is no race. A sum that a thread goes on
// to use is one.
// RUN: optiml-run --check=verify %s | FileCheck %s
// RUN: not optiml-run --check=verify %s -- use 2>&1 | FileCheck %s --check-prefix=USED
// RUN: not optiml-run --check=verify %s -- elsewhere 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// CHECK: 2016 2016
// USED: data race in global memory
// USED: first-load.cu:32,
// ELSEWHERE: data race in global memory
#include <cstdio>
#include <cstring>

__device__ float add(float *p, float v) {
  int *bits = (int *)p, old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(v + __int_as_float(assumed)));
  } while (assumed != old);
  return __int_as_float(old);
}
__global__ void sums(float *out) {
  __shared__ float sum;
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  add(&sum, threadIdx.x);
  add(&out[0], threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0)
    out[1] = sum;
}
__global__ void use(float *out) { add(&out[0], 1); out[threadIdx.x + 2] = out[0]; }
__global__ void elsewhere(float *out) { add(&out[0], out[1] > 3 ? 1 : 2); add(&out[threadIdx.x % 2], 1); }

int main(int argc, char **argv) {
  float *out, result[2];
  cudaMalloc(&out, 100 * sizeof(float));
  cudaMemset(out, 0, 100 * sizeof(float));
  if (argc > 1)
    strcmp(argv[1], "use") ? elsewhere<<<1, 64>>>(out) : use<<<1, 64>>>(out);
  else
    sums<<<1, 64>>>(out);
  cudaMemcpy(result, out, sizeof(result), cudaMemcpyDeviceToHost);
  printf("%g %g\n", result[0], result[1]);
}
