// The user's macros replace no name that the emitted text uses, neither in a new kernel nor beside it.
// REQUIRES: optiml-run
// RUN: optiml-opt --reread --emit --passes='distribute-loop[sums]{threads=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | FileCheck %s
// CHECK-DAG: OptiML: sums: 1 optimized, 0 original launches
// CHECK-DAG: 512000.0 39
#include <cstdio>
#include <vector>
#define grid 64
#define block 128
#define shared 0
#define stream 7
#define original 3
#define path "here"
#define kernel 9
#define room 11
#define count 5
#define enabled 4
#define offset 6
#define warp 7
#define other 8
__global__ void sums(const float *in, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = 0;
  for (int k = 0; k < m; ++k) s += in[k * n + i];
  out[i] = s;
}
int main() {
  int n = 8000, m = 64;
  std::vector<float> h(n * m, 1.0f);
  float *a, *b;
  cudaMalloc(&a, n * m * 4); cudaMalloc(&b, n * 4);
  cudaMemcpy(a, h.data(), n * m * 4, cudaMemcpyHostToDevice);
  sums<<<grid, block>>>(a, b, n, m);
  cudaMemcpy(h.data(), b, n * 4, cudaMemcpyDeviceToHost);
  double s = 0; for (int i = 0; i < n; ++i) s += h[i];
  printf("%.1f %d\n", s, original + stream + shared + kernel + room + count + enabled);
}
