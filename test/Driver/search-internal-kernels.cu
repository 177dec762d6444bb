// Kernels that only their own file sees: compilers mangle their names differently.
// REQUIRES: optiml-search, optiml-run
// RUN: optiml-clang -O-search=16 --optiml-backend=cpu --optiml-store=none --optiml-emit=%t.cu -arch=sm_90 %s -o %t 2>&1 | FileCheck %s
// CHECK: OptiML: {{.*}}search-internal-kernels.cu: {{[0-9.]+}} times faster
// RUN: env OPTIML_TRACE=1 optiml-run %t.cu 2>&1 | %check=RAN
// RAN-DAG: OptiML: sums: 1 optimized, 0 original launches
// RAN-DAG: 128000.0
#include <cstdio>
#include <vector>
namespace {
__global__ void addOne(float *const *rows, int rowCount, int cols) {
  int r = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rowCount && c < cols) rows[r][c] += 1.0f;
}
}
static __global__ void sums(const float *in, float *out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = 0;
  for (int k = 0; k < m; ++k) s += in[k * n + i];
  out[i] = s;
}
int main() {
  int n = 1000, m = 64;
  std::vector<float> h(n * m, 1.0f);
  float *a, *b; float **rows;
  cudaMalloc(&a, n * m * 4); cudaMalloc(&b, n * 4); cudaMalloc(&rows, m * sizeof(float *));
  std::vector<float *> p(m);
  for (int i = 0; i < m; ++i) p[i] = a + i * n;
  cudaMemcpy(rows, p.data(), m * sizeof(float *), cudaMemcpyHostToDevice);
  cudaMemcpy(a, h.data(), n * m * 4, cudaMemcpyHostToDevice);
  addOne<<<dim3(4, m), 256>>>(rows, m, n);
  sums<<<4, 256>>>(a, b, n, m);
  cudaMemcpy(h.data(), b, n * 4, cudaMemcpyDeviceToHost);
  double s = 0; for (int i = 0; i < n; ++i) s += h[i];
  printf("%.1f\n", s);
}
