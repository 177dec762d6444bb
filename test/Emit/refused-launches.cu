// A launch that CUDA refuses stays refused, whatever geometry the new kernel would have.
// REQUIRES: optiml-run
// RUN: optiml-opt --reread --emit --passes='distribute-loop[sums]{threads=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run %s | FileCheck %s
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=TRACED
// RUN: optiml-run %t.cu | FileCheck %s
// CHECK: 4 x 64: no error
// CHECK-NEXT: 0 x 64: invalid configuration argument
// CHECK-NEXT: 4 x 2048: invalid configuration argument
// CHECK-NEXT: 4 x 512: too many resources requested for launch
// CHECK-NEXT: 4 x 0: invalid configuration argument
// TRACED: OptiML: sums: 1 optimized, 4 original launches
#include <cstdio>

__global__ void __launch_bounds__(256) sums(const float *in, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int k = 0; k < m; ++k)
      s += in[i * m + k];
    out[i] = s;
  }
}

int main() {
  const int n = 200, m = 70;
  float *in, *out;
  cudaMallocManaged(&in, n * m * sizeof(float));
  cudaMallocManaged(&out, n * sizeof(float));
  for (int i = 0; i < n * m; ++i)
    in[i] = float(i % 7);
  const int shapes[][2] = {{4, 64}, {0, 64}, {4, 2048}, {4, 512}, {4, 0}};
  for (auto [blocks, threads] : shapes) {
    sums<<<blocks, threads>>>(in, out, n, m);
    printf("%d x %d: %s\n", blocks, threads, cudaGetErrorString(cudaGetLastError()));
  }
  cudaDeviceSynchronize();
}
