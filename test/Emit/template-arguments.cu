// Template arguments in the emitted text: names in nameless namespaces, characters, and values that have no exact name.
// RUN: optiml-opt --emit --passes="distribute-loop[(anonymous namespace)::scaled<2>]{threads=64};distribute-loop[mapped<(anonymous namespace)::Square>]{threads=64};distribute-loop[marked<'\"'>]{threads=64}" %s -- -std=c++20 -arch=sm_90 > %t.cu
// RUN: %nvcc -std=c++20 -arch=sm_90 -Xcompiler -Wall,-Wextra,-Wshadow,-Werror -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run -std=c++20 %t.cu 2>&1 | FileCheck %s
// RUN: optiml-opt --list-sites %s -- -std=c++20 -arch=sm_90 2>&1 | %check=NOTES
// CHECK-DAG: OptiML: (anonymous namespace)::scaled<2>: 1 optimized, 0 original launches
// CHECK-DAG: OptiML: mapped<(anonymous namespace)::Square>: 1 optimized, 0 original launches
// CHECK-DAG: OptiML: marked<'"'>: 1 optimized, 0 original launches
// NOTES-NOT: [weighted
// NOTES-DAG: weighted<{{.*}}a template argument has no exact name here
// NOTES-DAG: boxed<{{.*}}a template argument has no exact name here
#include <cstdio>

namespace {
struct Square {
  static __device__ float of(float x) { return x * x; }
};
template <int K> __global__ void scaled(const float *in, float *out, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int c = 0; c < m; ++c)
    s += in[r * m + c] * K;
  out[r] = s;
}
} // namespace
template <class Op> __global__ void mapped(const float *in, float *out, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int c = 0; c < m; ++c)
    s += Op::of(in[r * m + c]);
  out[r] = s;
}
template <char Mark> __global__ void marked(const float *in, float *out, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  float s = 0;
  for (int c = 0; c < m; ++c)
    s += in[r * m + c] + Mark;
  out[r] = s;
}
// What Clang prints for these is the name of another instantiation.
struct Weight {
  int steps;
  float by;
};
template <Weight W> __global__ void weighted(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] *= W.by > 1.0f ? 2 : 3;
}
template <Weight W> struct Box {
  static __device__ float of(float x) { return W.by * x; }
};
template <class B> __global__ void boxed(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = B::of(out[i]);
}

int main() {
  const int n = 100, m = 70;
  float *in, *out, host[n];
  cudaMalloc(&in, n * m * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(in, 0, n * m * sizeof(float));
  scaled<2><<<1, 128>>>(in, out, n, m);
  mapped<Square><<<1, 128>>>(in, out, n, m);
  marked<'"'><<<1, 128>>>(in, out, n, m);
  weighted<Weight{2, 1.0000004f}><<<1, 128>>>(out, n);
  boxed<Box<Weight{2, 1.0000004f}>><<<1, 128>>>(out, n);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g\n", host[n - 1]);
}
