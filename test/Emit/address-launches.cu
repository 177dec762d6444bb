// Launches by a kernel's address take the new kernel, too, and end with the same error.
// REQUIRES: optiml-run
// RUN: optiml-opt --reread --emit --passes='distribute-loop[math::sums]{threads=64};distribute-loop[squares<float>]{threads=64}' %s > %t.cu 2> %t.remarks
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// REMARK: address-launches.cu:{{[0-9]+}}: the address of math::sums is taken here; launches through it keep the original kernel
// REMARK-NOT: address
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: optiml-run %s > %t.want
// RUN: FileCheck %s < %t.want
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu > %t.have 2> %t.trace
// RUN: cmp %t.want %t.have
// RUN: FileCheck %s --check-prefix=TRACE < %t.trace
// CHECK: 4 x 64: no error, then no error
// CHECK-NEXT: 0 x 64: invalid configuration argument, then invalid configuration argument
// CHECK-NEXT: an error before: no error, then invalid configuration argument
// CHECK-NEXT: configured: no error, then no error
// CHECK-NEXT: with an attribute: no error, then no error
// CHECK-NEXT: no block: invalid configuration argument, then invalid configuration argument
// CHECK-NEXT: by addresses: no error, then no error
// CHECK-NEXT: sums 210.0, squares 910.0
// TRACE-DAG: OptiML: math::sums: 3 optimized, 3 original launches
// TRACE-DAG: OptiML: squares<float>: 1 optimized, 0 original launches
#include <cstdio>

namespace math {
__global__ void sums(const float *__restrict__ in, float *out, const int n, int m);
}
template <typename T> __global__ void squares(const T *in, T *out, int n, int m);

static cudaError_t launch(int blocks, const float *in, float *out, int n, int m) {
  void *arguments[] = {&in, &out, &n, &m};
  return cudaLaunchKernel((void *)&math::sums, dim3(blocks), dim3(64), arguments, 0, nullptr);
}

template <typename Function> static cudaError_t configured(int blocks, int attributes, Function launch) {
  cudaLaunchAttribute priority;
  priority.id = cudaLaunchAttributePriority;
  priority.val.priority = 0;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = 64;
  config.attrs = &priority;
  config.numAttrs = attributes;
  return launch(config);
}

static void report(const char *what, cudaError_t error) {
  printf("%s: %s, then %s\n", what, cudaGetErrorString(error), cudaGetErrorString(cudaGetLastError()));
}

namespace math {
__global__ void sums(const float *__restrict__ in, float *out, const int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float s = 0;
    for (int k = 0; k < m; ++k)
      s += in[i * m + k];
    out[i] = s;
  }
}
} // namespace math

template <typename T> __global__ void squares(const T *in, T *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    T s = 0;
    for (int k = 0; k < m; ++k)
      s += in[i * m + k] * in[i * m + k];
    out[i] = s;
  }
}

int main() {
  int n = 200, m = 70;
  float *in, *out, *more;
  cudaMallocManaged(&in, n * m * sizeof(float));
  cudaMallocManaged(&out, n * sizeof(float));
  cudaMallocManaged(&more, n * sizeof(float));
  for (int i = 0; i < n * m; ++i)
    in[i] = float(i % 7);
  report("4 x 64", launch(4, in, out, n, m));
  report("0 x 64", launch(0, in, out, n, m));
  cudaFuncSetAttribute(squares<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30);
  cudaGetLastError();
  math::sums<<<0, 64>>>(in, out, n, m);
  cudaError_t error = launch(4, in, out, n, m);
  report("an error before", error);
  void *arguments[] = {&in, &more, &n, &m};
  cudaLaunchKernel(squares<float>, dim3(4), dim3(64), arguments);
  cudaDeviceSynchronize();
  auto values = [&](cudaLaunchConfig_t &c) { return cudaLaunchKernelEx(&c, math::sums, in, out, n, short(m)); };
  auto addresses = [&](cudaLaunchConfig_t &c) {
    void *own[] = {&in, &out, &n, &m};
    return cudaLaunchKernelExC(&c, (const void *)math::sums, own);
  };
  report("configured", configured(4, 0, values));
  report("with an attribute", configured(4, 1, values));
  report("no block", configured(0, 0, values));
  report("by addresses", configured(4, 0, addresses));
  cudaDeviceSynchronize();
  auto *later = math::sums;
  later<<<1, 1>>>(in, out, 1, 1);
  cudaDeviceSynchronize();
  printf("sums %.1f, squares %.1f\n", out[3], more[4]);
}
