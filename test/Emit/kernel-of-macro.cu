// Kernels that a macro makes: their twins stand behind the macro's call.
// RUN: optiml-opt --reread --emit --passes='block-shape[twice]{x=64};block-shape[more]{x=96}' %s > %t.cu
// RUN: FileCheck %s < %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RAN-DAG: twice: 1 optimized, 0 original launches
// RAN-DAG: more: 1 optimized, 0 original launches
// RAN-DAG: {{^}}16{{$}}
// REQUIRES: optiml-run
#include <cstdio>

#define KERNEL(NAME, OP)                                                                                               \
  __global__ void NAME(const float *a, float *b, int n) {                                                              \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                     \
    if (i < n)                                                                                                         \
      b[i] = a[i] OP 2.0f;                                                                                             \
  }

// CHECK: {{^}}KERNEL(twice, *){{$}}
// CHECK: __global__ void __launch_bounds__(64) {{[^ ]*}}(const float *a, float *b, int n) {
// CHECK: {{^}}KERNEL(more, +){{$}}
// CHECK: __global__ void __launch_bounds__(96) {{[^ ]*}}(const float *a, float *b, int n) {
KERNEL(twice, *)
KERNEL(more, +);

int main() {
  float *a, *b;
  cudaMallocManaged(&a, 400);
  cudaMallocManaged(&b, 400);
  for (int i = 0; i < 100; i++)
    a[i] = i;
  twice<<<1, 128>>>(a, b, 100);
  more<<<1, 128>>>(b, a, 100);
  cudaDeviceSynchronize();
  printf("%g\n", a[7]);
}
