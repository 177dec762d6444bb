// Atomic operations of every type, scoped ones, and a loop of compare-and-swap.
// RUN: optiml-run %s | FileCheck %s
// RUN: optiml-run --check=verify %s | FileCheck %s
#include <cstdio>
#include <cuda_runtime.h>

__device__ double addByCas(double *p, double v) {
  unsigned long long *a = (unsigned long long *)p, old = *a, assumed;
  do {
    assumed = old;
    old = atomicCAS(a, assumed, __double_as_longlong(v + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}

__global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  atomicAdd(&i[0], 1);
  atomicSub(&i[1], 2);
  atomicMax(&i[2], t - 5);
  atomicMin(&i[3], -t);
  atomicAnd(&i[4], ~(1 << (t % 31)));
  atomicOr(&i[5], 1 << (t % 31));
  atomicXor(&i[6], t);
  atomicInc(&u[0], 6);
  atomicDec(&u[1], 4);
  if (blockIdx.x == 0) // other blocks would race with it
    atomicMax_block(&u[2], t == 3 ? 0x80000001u : 5u); // unsigned: the sign bit is no sign
  atomicMin_system(&u[3], 0xfffffff0u + t % 8);
  atomicAdd(&l[0], 1ull << 33);
  atomicAdd(&f[0], 0.5f);
  atomicAdd(&d[0], 0.25);
  addByCas(&d[1], 2.0);
  if (t == 100)
    f[2] = atomicExch(&f[1], 7.0f);
}

int main() {
  int *i;
  unsigned *u;
  unsigned long long *l;
  float *f;
  double *d;
  int hi[7] = {0, 0, 0, 0, -1, 0, 0};
  unsigned hu[4] = {0, 3, 7, 0xffffffff};
  unsigned long long hl[1] = {1};
  float hf[3] = {1, 2, 3};
  double hd[2] = {1, 1};
  cudaMalloc(&i, sizeof hi);
  cudaMalloc(&u, sizeof hu);
  cudaMalloc(&l, sizeof hl);
  cudaMalloc(&f, sizeof hf);
  cudaMalloc(&d, sizeof hd);
  cudaMemcpy(i, hi, sizeof hi, cudaMemcpyHostToDevice);
  cudaMemcpy(u, hu, sizeof hu, cudaMemcpyHostToDevice);
  cudaMemcpy(l, hl, sizeof hl, cudaMemcpyHostToDevice);
  cudaMemcpy(f, hf, sizeof hf, cudaMemcpyHostToDevice);
  cudaMemcpy(d, hd, sizeof hd, cudaMemcpyHostToDevice);
  atomics<<<4, 64>>>(i, u, l, f, d);
  cudaMemcpy(hi, i, sizeof hi, cudaMemcpyDeviceToHost);
  cudaMemcpy(hu, u, sizeof hu, cudaMemcpyDeviceToHost);
  cudaMemcpy(hl, l, sizeof hl, cudaMemcpyDeviceToHost);
  cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost);
  cudaMemcpy(hd, d, sizeof hd, cudaMemcpyDeviceToHost);
  for (int v : hi)
    printf("%d ", v);
  printf("\n%u %u %x %x %llx\n", hu[0], hu[1], hu[2], hu[3], hl[0]);
  printf("%g %g %g %g %g\n", hf[0], hf[1], hf[2], hd[0], hd[1]);
}
// CHECK: 256 -512 250 -255 -2147483648 2147483647 0
// CHECK: 4 2 80000001 fffffff0 20000000001
// CHECK: 129 7 2 65 513
