// Launches within templates: the instantiation decides which kernel runs.
// REQUIRES: optiml-opt, optiml-run
// RUN: optiml-opt --emit --passes='block-shape[lib::fill<float, 2>]{x=64,y=1};block-shape[lib::fill<float, 5>]{x=32,y=1};block-shape[add]{x=64,y=1};block-shape[scale<float>]{x=64,y=1};block-shape[shift<3, float>]{x=32,y=1};block-shape[third<float, 0>]{x=64,y=1}' %s > %t.cu 2> %t.err
// RUN: FileCheck %s --check-prefix=TEXT < %t.cu
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// RUN: %nvcc -std=c++11 -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | FileCheck %s
// REMARK: emit-templates.cu:[[#]]: this launch of third<float, 0> keeps the original kernel: it stands in a template and leaves the kernel's template arguments to a deduction
// TEXT: lib::{{fill_optiml_choose[0-9]?}}(lib::fill<T, N>)(1, 256, 0, 0, out, count, T(1));
// TEXT: {{scale_optiml_choose[0-9]?_deduced}}(1, 256, 0, 0, Scaled<T>{out}, count);
// TEXT: {{shift_optiml_choose[0-9]?_deduced}}<3>(1, 256, 0, 0, out, count);
// TEXT: {{add_optiml[0-9]?_launch}}(1, 256, 0, 0, a, b);
// CHECK-DAG: PASS
// fill<float, 7> and fill<double, 2> run the original.
// CHECK-DAG: OptiML: lib::fill<float, 2>: 1 optimized, 0 original launches
// CHECK-DAG: OptiML: lib::fill<float, 5>: 1 optimized, 0 original launches
// CHECK-DAG: OptiML: add: 2 optimized, 0 original launches
// Of T = float; those for double run the original.
// CHECK-DAG: OptiML: scale<float>: 1 optimized, 0 original launches
// CHECK-DAG: OptiML: shift<3, float>: 1 optimized, 0 original launches
#include <cstdio>
#include <vector>

namespace lib {
template <typename T, int N> __global__ void fill(T *out, int count, T by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    out[i] += N * by;
}
template <typename T> __global__ void zero(T *out, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    out[i] = 0;
}
} // namespace lib

__global__ void add(const float *a, float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 200)
    b[i] += a[i];
}

template <typename T, int N> void filled(T *out, long count) {
  lib::fill<T, N><<<1, 256>>>(out, count, T(1));
}

template <typename T> struct Scaled {
  T *data;
};
template <typename T> __global__ void scale(Scaled<T> x, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    x.data[i] *= 2;
}
template <typename T> void scaled(T *out, int count) {
  scale<<<1, 256>>>(Scaled<T>{out}, count);
}

template <int By, typename T> __global__ void shift(T *x, int optiml_count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < optiml_count)
    x[i] += By;
}
template <typename T, int = 0> __global__ void third(T *x, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    x[i] += 3;
}
template <typename T> void shifted(T *out, int count) {
  shift<3><<<1, 256>>>(out, count);
  third<<<1, 256>>>(out, count);
}

template <typename T> void addTo(T *a, T *b) {
  add<<<1, 256>>>(a, b);
}

int main() {
  float *a, *b;
  double *d;
  cudaMalloc(&a, 200 * sizeof(float));
  cudaMalloc(&b, 200 * sizeof(float));
  cudaMalloc(&d, 200 * sizeof(double));
  lib::zero<<<1, 256>>>(a, 200);
  lib::zero<<<1, 256>>>(b, 200);
  lib::zero<<<1, 256>>>(d, 200);
  filled<float, 2>(a, 200);
  filled<float, 5>(a, 200);
  filled<float, 7>(a, 200);
  filled<double, 2>(d, 200);
  scaled(a, 200);
  scaled(d, 200);
  shifted(a, 200);
  shifted(d, 200);
  addTo(a, b);
  addTo(a, b);
  std::vector<float> x(200), y(200);
  std::vector<double> z(200);
  cudaMemcpy(x.data(), a, 800, cudaMemcpyDeviceToHost);
  cudaMemcpy(y.data(), b, 800, cudaMemcpyDeviceToHost);
  cudaMemcpy(z.data(), d, 1600, cudaMemcpyDeviceToHost);
  bool good = true;
  for (int i = 0; i < 200; ++i)
    good &= x[i] == 34 && y[i] == 68 && z[i] == 10;
  std::puts(good ? "PASS" : "FAIL");
}
