// A template is declared before its kernel, as in a header, and defined behind it: what it launches can be replaced.
// RUN: optiml-opt --emit --passes='distribute-loop[sums::rows<float>]{threads=64}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | FileCheck %s
// CHECK: OptiML: sums::rows<float>: 2 optimized, 0 original launches
#include <cstdio>

namespace sums {
template <typename T> void rowSums(const T *in, T *out, int n, int m);
template <typename T> struct Runner {
  void run(const T *in, T *out, int n, int m);
};
template <typename T> __global__ void rows(const T *in, T *out, int n, int m) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n)
    return;
  T s = 0;
  for (int c = 0; c < m; ++c)
    s += in[r * m + c];
  out[r] = s;
}
template <typename T> void rowSums(const T *in, T *out, int n, int m) {
  rows<<<(n + 63) / 64, 64>>>(in, out, n, m);
}
template <typename T> void Runner<T>::run(const T *in, T *out, int n, int m) {
  rows<T><<<(n + 63) / 64, 64>>>(in, out, n, m);
}
} // namespace sums

int main() {
  const int n = 100, m = 70;
  float *in, *out, host[n];
  cudaMalloc(&in, n * m * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(in, 0, n * m * sizeof(float));
  sums::rowSums(in, out, n, m);
  sums::Runner<float>().run(in, out, n, m);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g\n", host[n - 1]);
}
