// A launch that is an argument of a macro is redirected; one that a macro makes is not.
// REQUIRES: optiml-opt, optiml-run
// RUN: optiml-opt --emit --passes='block-shape[add]{x=64,y=1}' %s > %t.cu 2> %t.err
// RUN: FileCheck %s --check-prefix=TEXT < %t.cu
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | FileCheck %s
// TEXT: CHECK_LAUNCH(add_optiml_launch(BLOCKS(n), dim3(128), 0, 0, a, b, n));
// TEXT: CHECK_LAUNCH(TWICE((add_optiml_launch(2, 128, 0, 0, a, ZERO + b, n))));
// REMARK: emit-macros.cu:[[@LINE+36]]: this launch of add keeps the original kernel: it is written by a macro
// REMARK: emit-macros.cu:[[@LINE+36]]: this launch of add keeps the original kernel: it is written by a macro
// REMARK-NOT: keeps the original
// CHECK-DAG: PASS
// CHECK-DAG: OptiML: add: 3 optimized, 0 original launches
#include <cstdio>
#include <cstdlib>
#define CHECK_LAUNCH(...)                                                                                              \
  do {                                                                                                                 \
    __VA_ARGS__;                                                                                                       \
    if (cudaGetLastError() != cudaSuccess) {                                                                           \
      printf("failed: %s\n", #__VA_ARGS__);                                                                            \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)
#define TWICE(call) call, call
#define BLOCKS(n) (((n) + 127) / 128)
#define ZERO 0
#define LAUNCH(kernel, ...) kernel<<<2, 128>>>(__VA_ARGS__)
#define ADD_ALL add<<<2, 128>>>(a, b, n)

__global__ void add(const float *a, float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    b[i] += a[i];
}

int main() {
  int n = 200;
  float *a, *b;
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  for (int i = 0; i < n; ++i)
    a[i] = i, b[i] = 1;
  CHECK_LAUNCH(add<<<BLOCKS(n), dim3(128)>>>(a, b, n));
  CHECK_LAUNCH(TWICE((add<<<2, 128>>>(a, ZERO + b, n))));
  LAUNCH(add, a, b, n);
  CHECK_LAUNCH(ADD_ALL);
  cudaDeviceSynchronize();
  bool good = true;
  for (int i = 0; i < n; ++i)
    good &= b[i] == 1 + 5 * i;
  printf(good ? "PASS\n" : "FAIL\n");
}
